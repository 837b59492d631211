// What each server says about an expression, without what legitimately differs.
import { call } from '../../servers.mjs';

const anyNumber = /\d+/g;
const quoted = /"(?:[^"\\]|\\.)*"|'[^']*'/g;

/** An outcome as both servers would word it. */
function plainOutcome(outcome) {
  if (outcome === undefined) return 'accepted';
  return (
    outcome
      // The reference numbers the types of rules that it does not name.
      .replace(/\bselfType\d+/g, 'selfType')
      // A rule is printed as Go, or as JSON.
      .replace(
        /Invalid value: (?:apiextensions\.ValidationRule)?\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}: /g,
        '',
      )
      // A long value is cut.
      .replace(
        /^Invalid value: (?:apiextensions\.ValidationRule)?\{.*(?=compilation failed: )/s,
        '',
      )
  );
}

/** An outcome without errors after the first. */
export function firstError(outcome) {
  const [head, first] = outcome.split('ERROR: ');
  return first === undefined ? outcome : head + first.split('\n')[0];
}

/** What similar outcomes share. */
const shape = (outcome) =>
  firstError(outcome).replace(quoted, 'Q').replace(anyNumber, 'N').slice(0, 90);

/** Functions of later releases, which are accepted on purpose. */
const later = /isSemver|distinct|\.sign\(\)|semver\(/;

/**
 * @param options.both the servers
 * @param options.compared reports a comparison
 */
export function createOutcomes({ both, compared }) {
  /** Sends one request to both servers; `bodies` holds a body per server. */
  function ask({ bodies, ...request }) {
    return Promise.all(
      both.map((server, index) =>
        call(server, { ...request, body: bodies?.[index] ?? request.body }).catch(() => ({
          status: 0,
        })),
      ),
    );
  }

  /** Compares the two outcomes of an expression; `reduce` removes what does not matter. */
  function compare({ subject, expression, outcomes, reduce = (outcome) => outcome }) {
    const [there, here] = outcomes.map((outcome) => reduce(plainOutcome(outcome)));
    const request = { method: 'CEL', path: '', body: expression };
    if (there === here || later.test(expression)) {
      compared(subject, request, undefined);
      return;
    }
    const signature = `${shape(there)} | ${shape(here)}`;
    const text = `  reference ${there.slice(0, 900)}\n  here      ${here.slice(0, 900)}`;
    compared(subject, request, { signature, text });
  }

  return { ask, compare };
}

/** The causes of a Status by what `index` finds in their fields. */
export function causesByIndex(answer, index) {
  const found = new Map();
  for (const { field = '', message = '' } of answer.body?.details?.causes ?? []) {
    const match = index.exec(field);
    // Rules also contribute to the cost of their definition, in a varying order.
    if (match === null || /contributed to estimated rule/.test(message)) continue;
    const at = Number(match[1]);
    found.set(at, found.has(at) ? `${found.get(at)}\n${message}` : message);
  }
  return found;
}
