import type { UserInfo } from '../meta/types.ts';
import { type PolicyRule, policyRule, trimStars } from './rules.ts';

/** Whether the rules a user holds cover the rules to be granted, and which they don't. */
export interface Coverage {
  readonly covered: boolean;
  /** The smallest pieces of the wanted rules that nobody covers. */
  readonly missing: readonly PolicyRule[];
}

/**
 * Compares rules as upstream does (AUTHZ-5): each wanted rule is broken into pieces of one verb and
 * one resource (or path), and one held rule must cover a piece alone.
 */
export function ruleEscalation(
  held: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): Coverage {
  const missing = wanted
    .flatMap(piecesOf)
    .filter((piece) => !held.some((rule) => ruleCovers(rule, piece)));
  return { covered: missing.length === 0, missing };
}

/** The rule in pieces of one verb and one resource, with one name at most, or one path. */
export function piecesOf(rule: PolicyRule): PolicyRule[] {
  const pieces: PolicyRule[] = [];
  for (const group of rule.apiGroups) {
    for (const resource of rule.resources) {
      for (const verb of rule.verbs) {
        const base = { apiGroups: [group], resources: [resource], verbs: [verb] };
        if (rule.resourceNames.length === 0) pieces.push(policyRule(base));
        for (const name of rule.resourceNames) {
          pieces.push(policyRule({ ...base, resourceNames: [name] }));
        }
      }
    }
  }
  for (const url of rule.nonResourceURLs) {
    for (const verb of rule.verbs)
      pieces.push(policyRule({ nonResourceURLs: [url], verbs: [verb] }));
  }
  return pieces;
}

const coversAll = (held: readonly string[], wanted: readonly string[]): boolean =>
  held.includes('*') || wanted.every((one) => held.includes(one));

function ruleCovers(held: PolicyRule, piece: PolicyRule): boolean {
  const names =
    piece.resourceNames.length === 0
      ? held.resourceNames.length === 0
      : held.resourceNames.length === 0 ||
        piece.resourceNames.every((name) => held.resourceNames.includes(name));
  return (
    coversAll(held.verbs, piece.verbs) &&
    coversAll(held.apiGroups, piece.apiGroups) &&
    piece.resources.every((one) => resourceCovered(held.resources, one)) &&
    piece.nonResourceURLs.every((one) => urlCovered(held.nonResourceURLs, one)) &&
    names
  );
}

function resourceCovered(held: readonly string[], resource: string): boolean {
  if (held.includes('*') || held.includes(resource)) return true;
  const slash = resource.indexOf('/');
  return slash >= 0 && held.includes(`*/${resource.slice(slash + 1).split('/')[0]}`);
}

function urlCovered(held: readonly string[], url: string): boolean {
  return held.some(
    (one) => one === '*' || one === url || (one.endsWith('*') && url.startsWith(trimStars(one))),
  );
}

/** The `why` of the 403 for a user who would grant more than they hold, in upstream's words. */
export function escalationMessage(options: {
  readonly user: UserInfo;
  readonly missing: readonly PolicyRule[];
  readonly resolutionErrors: readonly string[];
}): string {
  const { user, resolutionErrors } = options;
  const lines = [...new Set(compactRules(options.missing).map(showRule))].sort();
  const name = JSON.stringify(user.name);
  const text =
    `user ${name} (groups=${showList(user.groups)}) is attempting to grant RBAC permissions ` +
    `not currently held:\n${lines.join('\n')}`;
  return resolutionErrors.length === 0
    ? text
    : `${text}; resolution errors: [${resolutionErrors.join(', ')}]`;
}

/** Joins pieces of one group and resource that differ in the verb only. */
function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const simple = new Map<string, PolicyRule>();
  const others: PolicyRule[] = [];
  for (const rule of rules) {
    if (rule.resourceNames.length > 0 || rule.nonResourceURLs.length > 0) {
      others.push(rule);
      continue;
    }
    const key = `${rule.apiGroups[0]}/${rule.resources[0]}`;
    const known = simple.get(key);
    const verbs = known === undefined ? rule.verbs : [...known.verbs, ...rule.verbs];
    simple.set(key, { ...rule, verbs });
  }
  return [...others, ...simple.values()];
}

const showList = (values: readonly string[]): string =>
  `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;

function showRule(rule: PolicyRule): string {
  const parts: [string, readonly string[]][] = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['ResourceNames', rule.resourceNames],
    ['Verbs', rule.verbs],
  ];
  const shown = parts
    .filter(([, values]) => values.length > 0)
    .map(([name, values]) => `${name}:${showList(values)}`);
  return `{${shown.join(', ')}}`;
}
