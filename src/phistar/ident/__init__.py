# SPDX-License-Identifier: BSD-3-Clause
"""Identification: from logs of a robot to a physically possible model with error bars.

``identify(robot, q, v, vdot, tau)`` is all of it in one call.
"""

from phistar.ident.base_parameters import BaseParameters, base_parameters
from phistar.ident.columns import Columns
from phistar.ident.consistent import ConsistentFit
from phistar.ident.excitation import Excitation, excitation
from phistar.ident.filtering import Derivatives, differentiate
from phistar.ident.fourier import FourierSeries
from phistar.ident.identify_robot import identify
from phistar.ident.least_squares import CrossValidation, LinearFit
from phistar.ident.logs import Log, read_log
from phistar.ident.payload import Payload, payload
from phistar.ident.pseudo_inertia import from_log_cholesky, is_possible, log_cholesky
from phistar.ident.result import Identification, ResidualSample

__all__ = [
    "BaseParameters",
    "Columns",
    "ConsistentFit",
    "CrossValidation",
    "Derivatives",
    "Excitation",
    "FourierSeries",
    "Identification",
    "LinearFit",
    "Log",
    "Payload",
    "ResidualSample",
    "base_parameters",
    "differentiate",
    "excitation",
    "from_log_cholesky",
    "identify",
    "is_possible",
    "log_cholesky",
    "payload",
    "read_log",
]
