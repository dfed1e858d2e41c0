#!/usr/bin/env python3
"""Compares what a suite printed with what is expected of it.

  compare.py EXPECTED LOG RESULT

EXPECTED has a line 'passed N' and, for each test that is known to fail, 'failed NAME: reason'; '#' begins a comment.
Every other test must pass, and at least N must: a failure that is not known, or fewer passes, is a complaint.
A known failure that passed is named, without complaint. RESULT gets 'passed complaints known'.
"""
import json
import re
import sys


def read_expected(path):
    passed, known = 0, {}
    for line in open(path):
        line = line.split("#")[0].strip() if line.startswith("#") else line.strip()
        if line.startswith("passed "):
            passed = int(line.split()[1])
        elif line.startswith("failed "):
            name, _, reason = line[len("failed "):].partition(": ")
            known[name] = reason
        elif line:
            sys.exit(f"{path}: not understood: {line}")
    return passed, known


def read_log(path):
    """The counts of the closing line, and the names of the tests that failed."""
    passed = failed = None
    names = []
    for line in open(path, errors="replace"):
        closing = re.match(r"^[\w-]+: (\d+) passed, (\d+) failed, (\d+) skipped$", line)
        if closing:
            passed, failed = int(closing[1]), int(closing[2])
        elif line.startswith('{"suite"'):
            names = json.loads(line)["failed_tests"]
        elif match := re.match(r"^FAIL +(K\d+) ", line):
            names.append(match[1])
    return passed, failed, names


def main():
    expected, log, result = sys.argv[1:4]
    least, known = read_expected(expected)
    passed, failed, names = read_log(log)
    complaints = []
    if passed is None:
        complaints.append("it did not come to its end")
        passed, failed = 0, 0
    else:
        unexpected = [name for name in names if name not in known]
        complaints += [f"failed: {name}" for name in unexpected]
        unnamed = failed - len(names)
        if unnamed > 0:
            complaints.append(f"{unnamed} failed without a name")
        if passed + len(unexpected) < least:
            complaints.append(f"{passed} passed where at least {least} did before")
    for complaint in complaints:
        print(f"   UNEXPECTED  {complaint}")
    expected_failures = [name for name in names if name in known]
    for name in expected_failures:
        print(f"   known       {name}: {known[name]}")
    for name in known:
        if name not in names and not complaints:
            print(f"   did not fail: {name} (take it out of {expected})")
    if passed > least:
        print(f"   {passed} passed, {least} were expected (write it into {expected})")
    with open(result, "w") as file:
        file.write(f"{passed} {len(complaints)} {len(expected_failures)}\n")


main()
