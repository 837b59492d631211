import { X509Certificate } from 'node:crypto';
import { isObject } from '@wheelhouse/machinery';

// Validates the arguments that programs pass to a plane. JavaScript programs have no types, and a
// misspelled member would otherwise be ignored: an option without effect, a fault for every
// request, a filter that matches everything.

/** A fault that cannot be added; the message describes the problem. */
export class FaultRuleError extends Error {
  override name = 'FaultRuleError';
}

/** Returns the problem of a value; undefined if the value is valid. */
type Check = (value: unknown) => string | undefined;

const listOf = (items: string, isItem: (item: unknown) => boolean): Check => {
  return (value) =>
    Array.isArray(value) && value.every(isItem) ? undefined : `must be a list of ${items}`;
};
const isText = (value: unknown): value is string => typeof value === 'string';
const anything: Check = () => undefined;
const text: Check = (value) => (isText(value) ? undefined : 'must be a string');
const texts = listOf('strings', isText);
const textOrTexts: Check = (value) =>
  isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText))
    ? undefined
    : 'must be a string or a list of strings';
const manifests = listOf('files, strings, or objects', (item) => isText(item) || isObject(item));
const number: Check = (value) => (Number.isFinite(value) ? undefined : 'must be a number');
const count: Check = (value) =>
  Number.isSafeInteger(value) && Number(value) > 0 ? undefined : 'must be a positive integer';
const object: Check = (value) => (isObject(value) ? undefined : 'must be an object');

const certificates: Check = (value) => {
  try {
    if (!isText(value)) return 'must be a string in PEM';
    new X509Certificate(value);
    return undefined;
  } catch {
    return 'contains no PEM certificate';
  }
};

/** The members of each accepted object, with their checks. */
const checkedMembers = {
  'options of a plane': {
    flags: texts,
    crds: manifests,
    objects: manifests,
    webhooks: object,
    seed: number,
    recordedMax: count,
  },
  'options of webhooks': { address: text, caPem: certificates, configurations: manifests },
  'members of a fault': {
    effect: anything,
    user: text,
    verb: textOrTexts,
    kind: text,
    namespace: text,
    name: text,
    subresource: text,
    probability: number,
    times: number,
    status: number,
    message: text,
    retryAfterSeconds: count,
    delayMs: number,
    afterMs: number,
  },
  'filters of watches': { user: text, kind: text, namespace: text },
  'filters of requests': {
    user: text,
    verb: textOrTexts,
    apiVersion: text,
    kind: text,
    subresource: text,
    namespace: text,
    name: text,
    status: number,
    fault: text,
    since: number,
  },
} satisfies Record<string, Record<string, Check>>;

/**
 * Returns a message about the first member of a value that is unknown or has the wrong type;
 * undefined if there is none. An undefined member counts as absent.
 */
export function problemOf(
  members: keyof typeof checkedMembers,
  value: unknown,
): string | undefined {
  if (!isObject(value)) return `the ${members} must be an object`;
  const checks = new Map<string, Check>(Object.entries(checkedMembers[members]));
  for (const [name, member] of Object.entries(value)) {
    const check = checks.get(name);
    if (check === undefined) {
      const names = [...checks.keys()].join(', ');
      return `${JSON.stringify(name)} is not one of the ${members}, which are ${names}`;
    }
    const problem = member === undefined ? undefined : check(member);
    if (problem !== undefined) return `${JSON.stringify(name)} of the ${members} ${problem}`;
  }
  return undefined;
}

/** Throws TypeError for a member that is unknown or has the wrong type. */
export function checkMembers(members: keyof typeof checkedMembers, value: unknown): void {
  const problem = problemOf(members, value);
  if (problem !== undefined) throw new TypeError(problem);
}

/** Throws TypeError unless a user has a name and a list of groups. */
export function checkUser(name: unknown, groups: unknown): void {
  if (!isText(name) || name === '') throw new TypeError('a user needs a name');
  const problem = texts(groups);
  if (problem === undefined) return;
  throw new TypeError(`the groups of user ${JSON.stringify(name)} ${problem}`);
}
