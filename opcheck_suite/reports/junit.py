"""JUnit XML, which CI systems show as tests: a suite for each op, a test for each check, device, dtype and sample.

pytest's ``--junitxml`` writes its own; this is for ``opcheck run``. Source: https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from opcheck_suite.model import Outcome, Report, Result
from opcheck_suite.reports import text

_ELEMENTS = {
    Outcome.FAIL: "failure",
    Outcome.XPASS: "failure",
    Outcome.ERROR: "error",
    Outcome.CRASH: "error",
    Outcome.TIMEOUT: "error",
    Outcome.SKIP: "skipped",
    Outcome.NOT_EXERCISED: "skipped",
    Outcome.XFAIL: "skipped",
}
#: What XML 1.0 cannot hold, also not as a reference.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """The report as JUnit XML. A run that did not end has a suite with an error that says so."""
    root = ET.Element("testsuites", name="opcheck", time=f"{report.seconds:.3f}")
    by_op: dict[str, list[Result]] = {}
    for result in report.results:
        by_op.setdefault(result.op, []).append(result)
    for op, results in by_op.items():
        suite = ET.SubElement(root, "testsuite", name=_clean(op))
        for result in results:
            _case(suite, result, report)
        _count(suite)
    if report.stopped:
        suite = ET.SubElement(root, "testsuite", name="opcheck")
        case = ET.SubElement(suite, "testcase", classname="opcheck", name="the run is complete")
        ET.SubElement(case, "error", type="error", message=_clean(f"incomplete: {report.stopped}"))
        _count(suite)
    _count(root)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, result: Result, report: Report) -> None:
    where = "/".join(filter(None, (result.device, result.dtype)))
    name = f"{result.check}[{'-'.join(filter(None, (where, result.sample)))}]"
    case = ET.SubElement(
        suite, "testcase", classname=_clean(result.op), name=_clean(name), time=f"{result.seconds:.6f}"
    )
    strict = bool(report.options.get("strict")) and result.outcome.strict_bad and not result.outcome.bad
    if kind := "failure" if strict else _ELEMENTS.get(result.outcome):
        first = result.message.partition("\n")[0] or result.outcome.value
        told = ET.SubElement(case, kind, type=result.outcome.value, message=_clean(first))
        if kind != "skipped":
            told.text = _clean(text.block(result, report))
    elif result.message:
        ET.SubElement(case, "system-out").text = _clean(f"{result.outcome}: {result.message}")


def _count(element: ET.Element) -> None:
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.find(kind) is not None for case in cases)))


def _clean(told: str) -> str:
    return _FORBIDDEN.sub("?", told)
