"""The classes that functions return, for annotations and `isinstance`. None of them is made by hand."""

from __future__ import annotations

from kpod._analysis.analysis import Analysis
from kpod._analysis.comparing import Comparison
from kpod._analysis.other_numbers_of_clusters import OtherNumber
from kpod._analysis.verdict import OtherChoice, Verdict
from kpod._columns.preparing.role_table import ColumnRole, RoleTable
from kpod._common.notes import Note, Notes
from kpod._findings.assignment_rule import Rule
from kpod._findings.cluster_shapes import ShapeChoice
from kpod._findings.outcome_comparison import Outcome
from kpod._findings.stability import Stability
from kpod._findings.sums_of_squares import ClusterSummary, MixtureSummary
from kpod._inputs.scanned import ScannedTable
from kpod._missing.diagnosis import Diagnosis
from kpod._model_selection.informative_missingness import MissingnessDecision
from kpod._model_selection.number_of_clusters import KChoice
from kpod._report.comparison import ComparisonReport
from kpod._report.page import Report

__all__ = [
    "Analysis",
    "ClusterSummary",
    "ColumnRole",
    "Comparison",
    "ComparisonReport",
    "Diagnosis",
    "KChoice",
    "MissingnessDecision",
    "MixtureSummary",
    "Note",
    "Notes",
    "OtherChoice",
    "OtherNumber",
    "Outcome",
    "Report",
    "RoleTable",
    "Rule",
    "ScannedTable",
    "ShapeChoice",
    "Stability",
    "Verdict",
]
