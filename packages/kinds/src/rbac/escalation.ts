import {
  appendAll,
  boundedList,
  inOnePiece,
  itemAt,
  type UserInfo,
  WorkBudget,
} from '@wheelhouse/machinery';
import { HeldRules, type RuleSet } from './held-rules.ts';
import { type PolicyRule, policyRule } from './policy-rule.ts';

/** Whether the rules that a user holds cover the rules to be granted, and which they do not. */
export interface Coverage {
  readonly covered: boolean;
  /** The smallest pieces of the wanted rules that no rule covers, in the order of the rules. */
  readonly missing: readonly PolicyRule[];
  /** How many more such pieces there are. */
  readonly omitted: number;
}

/** Most steps of one comparison, for requests (TRUST-2). */
export const escalationStepsMax = 4_000_000;

/** Most pieces that a comparison for a request gathers. */
const piecesMax = 1000;

/**
 * Compares rules as upstream does (AUTHZ-5): each wanted rule is broken into pieces of one verb and
 * one resource (or path), and one held rule must cover a piece alone. All missing pieces are
 * gathered: for rules that are trusted.
 */
export function ruleEscalation(
  ownRules: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): Coverage {
  const unlimited = { steps: Number.POSITIVE_INFINITY, pieces: Number.POSITIVE_INFINITY };
  return inOnePiece(comparison({ ownRules, wanted, limits: unlimited }));
}

/**
 * The same for rules of a request, as work that can pause: gathers a bounded number of pieces and
 * throws WorkExceeded where the held rules differ in too many ways.
 */
export function boundedEscalation(
  ownRules: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): Iterator<void, Coverage> {
  return comparison({ ownRules, wanted, limits: { steps: escalationStepsMax, pieces: piecesMax } });
}

/** Values of one list that the same held rules cover; without resource names, one undefined. */
interface ValueClass<Value extends string | undefined = string> {
  readonly values: readonly Value[];
  readonly rules: RuleSet;
}

interface Gathered {
  readonly pieces: PolicyRule[];
  readonly max: number;
  count: number;
}

/**
 * Values that the same held rules cover are judged together, so that the cost follows the lengths of
 * the rules, and not the product of a rule's lists. Worked example: with `get pods` and `get nodes`
 * held, a rule of `get list watch` for `pods secrets configmaps` has the classes `get` and
 * `list watch`, `pods` and `secrets configmaps`, and is judged in four steps instead of nine.
 */
function* comparison(of: {
  readonly ownRules: readonly PolicyRule[];
  readonly wanted: readonly PolicyRule[];
  readonly limits: { readonly steps: number; readonly pieces: number };
}): Generator<void, Coverage> {
  const { limits } = of;
  const what = 'the check for privilege escalation';
  const heldRules = new HeldRules(of.ownRules, new WorkBudget({ what, steps: limits.steps }));
  const gathered: Gathered = { pieces: [], max: limits.pieces, count: 0 };
  for (const rule of of.wanted) {
    yield;
    yield* missingResources(gathered, rule, heldRules);
    yield* missingUrls(gathered, rule, heldRules);
  }
  const { pieces, count } = gathered;
  return { covered: count === 0, missing: pieces, omitted: count - pieces.length };
}

function* missingResources(
  gathered: Gathered,
  rule: PolicyRule,
  heldRules: HeldRules,
): Generator<void, void> {
  const groups = classesOf(rule.apiGroups, (value) => heldRules.ofGroup(value));
  const resources = classesOf(rule.resources, (value) => heldRules.ofResource(value));
  const verbs = classesOf(rule.verbs, (value) => heldRules.ofVerb(value));
  const names = nameClasses(rule, heldRules);
  const gaps: Gap[] = [];
  for (const group of groups) {
    for (const resource of resources) {
      const both = heldRules.common(group.rules, resource.rules);
      for (const verb of verbs) {
        yield;
        const three = heldRules.common(both, verb.rules);
        for (const name of names) {
          if (heldRules.common(three, name.rules).size > 0) continue;
          gaps.push({ group, resource, verb, name });
        }
      }
    }
  }
  gather(gathered, rule, gaps);
}

/** Pieces that no held rule covers: every combination of the values of four classes. */
interface Gap {
  readonly group: ValueClass;
  readonly resource: ValueClass;
  readonly verb: ValueClass;
  readonly name: ValueClass<string | undefined>;
}

/** Adds the pieces of one rule in the rule's own order. */
function gather(gathered: Gathered, rule: PolicyRule, gaps: readonly Gap[]): void {
  const lists = [rule.apiGroups, rule.resources, rule.verbs, rule.resourceNames];
  const places = lists.map(placesOf);
  const found: { readonly piece: PolicyRule; readonly place: readonly number[] }[] = [];
  const room = gathered.max - gathered.pieces.length;
  for (const gap of gaps) {
    const { group, resource, verb, name } = gap;
    gathered.count += [group, resource, verb, name].reduce((n, { values }) => n * values.length, 1);
    for (const values of combinations(gap)) {
      if (found.length >= room) break;
      const place = values.map((value, index) => places[index]?.get(value ?? '') ?? 0);
      found.push({ piece: pieceOf(values), place });
    }
  }
  found.sort((one, other) => comparePlaces(one.place, other.place));
  for (const { piece } of found) gathered.pieces.push(piece);
}

/** Group, resource, verb, and name, if any. */
type Combination = readonly [string, string, string, string | undefined];

function* combinations({ group, resource, verb, name }: Gap): Generator<Combination> {
  for (const oneGroup of group.values)
    for (const oneResource of resource.values)
      for (const oneVerb of verb.values)
        for (const oneName of name.values) yield [oneGroup, oneResource, oneVerb, oneName];
}

function pieceOf([group, resource, verb, name]: Combination): PolicyRule {
  const base = { apiGroups: [group], resources: [resource], verbs: [verb] };
  return policyRule(name === undefined ? base : { ...base, resourceNames: [name] });
}

/** First position of each value. */
function placesOf(values: readonly string[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [index, value] of values.entries()) if (!places.has(value)) places.set(value, index);
  return places;
}

function comparePlaces(one: readonly number[], other: readonly number[]): number {
  const index = one.findIndex((place, at) => place !== other[at]);
  return index < 0 ? 0 : (one[index] ?? 0) - (other[index] ?? 0);
}

function* missingUrls(
  gathered: Gathered,
  rule: PolicyRule,
  heldRules: HeldRules,
): Generator<void, void> {
  const { nonResourceURLs, verbs } = rule;
  const unnamed = heldRules.ofAllNames();
  const verbRules = verbs.map((verb) => heldRules.common(unnamed, heldRules.ofVerb(verb)));
  for (const url of nonResourceURLs) {
    yield;
    const urlRules = heldRules.ofUrl(url);
    for (const [index, verb] of verbs.entries()) {
      if (heldRules.common(urlRules, itemAt(verbRules, index)).size > 0) continue;
      gathered.count += 1;
      if (gathered.pieces.length >= gathered.max) continue;
      gathered.pieces.push(policyRule({ nonResourceURLs: [url], verbs: [verb] }));
    }
  }
}

function nameClasses(rule: PolicyRule, heldRules: HeldRules): ValueClass<string | undefined>[] {
  if (rule.resourceNames.length === 0)
    return [{ values: [undefined], rules: heldRules.ofAllNames() }];
  return classesOf(rule.resourceNames, (value) => heldRules.ofName(value));
}

/** Puts together the values that the same held rules cover, in the order of the first of each. */
function classesOf(values: readonly string[], rulesOf: (value: string) => RuleSet): ValueClass[] {
  const classes = new Map<string, { readonly values: string[]; readonly rules: RuleSet }>();
  for (const value of values) {
    const rules = rulesOf(value);
    const key = [...rules].sort((one, other) => one - other).join();
    const valueClass = classes.get(key);
    if (valueClass === undefined) classes.set(key, { values: [value], rules });
    else valueClass.values.push(value);
  }
  return [...classes.values()];
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

/**
 * The `why` of the 403 for a user who would grant more than they hold, in upstream's words. Lists a
 * bounded number of rules and says how many pieces it leaves out (TRUST-3).
 */
export function escalationMessage(options: {
  readonly user: UserInfo;
  readonly coverage: Pick<Coverage, 'missing' | 'omitted'>;
  readonly resolutionErrors: readonly string[];
}): string {
  const { user, coverage, resolutionErrors } = options;
  const pieces = new Map<string, number>();
  for (const rule of compactRules(coverage.missing)) {
    const line = showRule(rule);
    pieces.set(line, (pieces.get(line) ?? 0) + rule.verbs.length);
  }
  const lines = boundedList([...pieces.keys()].sort(), (line) => line);
  const shown = lines.items.reduce((sum, line) => sum + (pieces.get(line) ?? 0), 0);
  const omitted = coverage.missing.length + coverage.omitted - shown;
  const more = omitted > 0 ? [`and ${omitted} more`] : [];
  const name = JSON.stringify(user.name);
  const text =
    `user ${name} (groups=${showList(user.groups)}) is attempting to grant RBAC permissions ` +
    `not currently held:\n${[...lines.items, ...more].join('\n')}`;
  const errors = boundedList(resolutionErrors, (error) => error);
  const others = errors.omitted > 0 ? [`and ${errors.omitted} more`] : [];
  return resolutionErrors.length === 0
    ? text
    : `${text}; resolution errors: [${[...errors.items, ...others].join(', ')}]`;
}

/** Joins pieces of one group and resource that differ in the verb only. */
function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const simple = new Map<string, PolicyRule & { readonly verbs: string[] }>();
  const others: PolicyRule[] = [];
  for (const rule of rules) {
    if (rule.resourceNames.length > 0 || rule.nonResourceURLs.length > 0) {
      others.push(rule);
      continue;
    }
    const key = `${rule.apiGroups[0]}/${rule.resources[0]}`;
    const simpleRule = simple.get(key);
    if (simpleRule === undefined) simple.set(key, { ...rule, verbs: [...rule.verbs] });
    else appendAll(simpleRule.verbs, rule.verbs);
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
