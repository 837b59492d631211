import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/**
 * Reads a report of vitest's JSON reporter. A file counts as one failure if it fails without a
 * failed test, which happens when it does not load or one of its hooks throws.
 * @param report the path of the report
 * @param options.root the directory that the paths of failures are relative to
 * @returns the number of passed tests, one text per failure, and the number of skipped tests
 */
export function readResults(report, { root }) {
  try {
    const { numPassedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
      readFileSync(report, 'utf8'),
    );
    const failures = testResults.flatMap((file) => {
      const path = relative(root, file.name);
      const failed = file.assertionResults.filter(({ status }) => status === 'failed');
      if (failed.length === 0 && file.status === 'failed') return [`${path}: ${file.message}`];
      return failed.map(({ fullName, failureMessages }) =>
        [path, fullName, failureMessages[0] ?? ''].join(': '),
      );
    });
    return { passed: numPassedTests, failures, skipped: numPendingTests + numTodoTests };
  } catch {
    return { passed: 0, failures: ['vitest did not write its report'], skipped: 0 };
  }
}
