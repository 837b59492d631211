import {
  appendAll,
  boundedList,
  itemAt,
  runInOnePiece,
  type UserInfo,
  WorkBudget,
} from '@wheelhouse/machinery';
import { type PolicyRule, policyRule, trimStars } from './policy-rule.ts';

/** Maximum steps of one comparison for a request (TRUST-2). */
const escalationStepsMax = 4_000_000;

/** Whether the own rules of a user cover the rules to be granted, and which pieces they do not. */
interface Coverage {
  readonly covered: boolean;
  /** The pieces of granted rules that no own rule covers, in the order of the rules. */
  readonly missing: readonly PolicyRule[];
  /** The number of further missing pieces. */
  readonly omitted: number;
}

/**
 * Compares rules as kube-apiserver does (AUTHZ-5): each granted rule is split into pieces of one
 * verb and one resource (or path), and a single own rule must cover each piece. The time and the
 * result are not bounded, so the rules must be of trusted origin.
 * @param ownRules the rules of the user
 * @param grantedRules the rules to be granted
 */
export function ruleEscalation(
  ownRules: readonly PolicyRule[],
  grantedRules: readonly PolicyRule[],
): Coverage {
  const unlimited = { steps: Number.POSITIVE_INFINITY, pieces: Number.POSITIVE_INFINITY };
  return runInOnePiece(compareRules({ ownRules, grantedRules, limits: unlimited }));
}

/** Rules by their index in a list of rules. */
type RuleSet = ReadonlySet<number>;

/** Maps the values of one list to the rules that have them, and contains those with all values. */
class ValueIndex {
  readonly #exact = new Map<string, Set<number>>();
  readonly #all = new Set<number>();
  readonly #wildcard: string | undefined;
  readonly #budget: WorkBudget;

  /**
   * @param budget charged for each query
   * @param options.wildcard the value that stands for all values, if there is one
   */
  constructor(budget: WorkBudget, options: { readonly wildcard?: string } = {}) {
    this.#budget = budget;
    this.#wildcard = options.wildcard;
  }

  /** The rules that have all values. */
  get all(): RuleSet {
    return this.#all;
  }

  /** Adds a rule that has all values. */
  addToAll(rule: number): void {
    this.#all.add(rule);
  }

  /** Adds a value of a rule. */
  add(value: string, rule: number): void {
    if (value === this.#wildcard) this.#all.add(rule);
    const present = this.#exact.get(value);
    if (present === undefined) this.#exact.set(value, new Set([rule]));
    else present.add(rule);
  }

  /** Returns the rules that have one of the values, or all values. */
  of(...values: readonly string[]): RuleSet {
    const matching = values.flatMap((value) => this.#exact.get(value) ?? []);
    if (matching.length === 0) return this.#all;
    this.#budget.spend(matching.reduce((sum, { size }) => sum + size, this.#all.size));
    if (matching.length === 1 && this.#all.size === 0) return itemAt(matching, 0);
    return new Set([...this.#all, ...matching.flatMap((indexes) => [...indexes])]);
  }
}

const none: RuleSet = new Set();

/** An index of rules that finds those that cover a verb, a group, a resource, a name, or a path. */
class RuleIndex {
  readonly #budget: WorkBudget;
  readonly #verbs: ValueIndex;
  readonly #groups: ValueIndex;
  readonly #resources: ValueIndex;
  readonly #names: ValueIndex;
  readonly #urls: ValueIndex;
  readonly #urlPrefixes = new Map<string, Set<number>>();

  /** @param budget charged by queries of the index; building it takes linear time */
  constructor(rules: readonly PolicyRule[], budget: WorkBudget) {
    this.#budget = budget;
    this.#verbs = new ValueIndex(budget, { wildcard: '*' });
    this.#groups = new ValueIndex(budget, { wildcard: '*' });
    this.#resources = new ValueIndex(budget, { wildcard: '*' });
    this.#names = new ValueIndex(budget);
    this.#urls = new ValueIndex(budget, { wildcard: '*' });
    // A role with several bindings contributes the same rules several times.
    for (const [index, rule] of [...new Set(rules)].entries()) this.#add(rule, index);
  }

  #add(rule: PolicyRule, index: number): void {
    for (const verb of rule.verbs) this.#verbs.add(verb, index);
    for (const group of rule.apiGroups) this.#groups.add(group, index);
    for (const resource of rule.resources) this.#resources.add(resource, index);
    for (const name of rule.resourceNames) this.#names.add(name, index);
    if (rule.resourceNames.length === 0) this.#names.addToAll(index);
    for (const url of rule.nonResourceURLs) {
      this.#urls.add(url, index);
      if (!url.endsWith('*')) continue;
      const prefix = trimStars(url);
      const present = this.#urlPrefixes.get(prefix);
      if (present === undefined) this.#urlPrefixes.set(prefix, new Set([index]));
      else present.add(index);
    }
  }

  ofVerb(verb: string): RuleSet {
    return this.#verbs.of(verb);
  }

  ofGroup(group: string): RuleSet {
    return this.#groups.of(group);
  }

  /** Returns the rules with the resource, including those with its subresource of all resources. */
  ofResource(resource: string): RuleSet {
    const [, subresource] = resource.split('/', 2);
    if (subresource === undefined) return this.#resources.of(resource);
    return this.#resources.of(resource, `*/${subresource}`);
  }

  /** Returns the rules with the name, including those without names, which apply to all objects. */
  ofName(name: string): RuleSet {
    return this.#names.of(name);
  }

  /** Returns the rules without names. */
  ofAllNames(): RuleSet {
    return this.#names.all;
  }

  ofUrl(url: string): RuleSet {
    this.#budget.spend(this.#urlPrefixes.size);
    const matching = [...this.#urlPrefixes].flatMap(([prefix, rules]) =>
      url.startsWith(prefix) ? [rules] : [],
    );
    const exact = this.#urls.of(url);
    if (matching.length === 0) return exact;
    this.#budget.spend(matching.reduce((sum, { size }) => sum + size, exact.size));
    return new Set([...exact, ...matching.flatMap((indexes) => [...indexes])]);
  }

  /** Returns the rules in both sets. */
  common(left: RuleSet, right: RuleSet): RuleSet {
    const [small, large] = left.size <= right.size ? [left, right] : [right, left];
    this.#budget.spend(small.size + 1);
    if (small.size === 0) return none;
    const both = [...small].filter((rule) => large.has(rule));
    return both.length === small.size ? small : new Set(both);
  }
}

/** The missing pieces that a comparison has found. */
interface MissingPieces {
  readonly pieces: PolicyRule[];
  /** Upper bound of `pieces`. */
  readonly max: number;
  /** The number of all missing pieces. */
  count: number;
}

/**
 * Compares rules in steps. Values that the same own rules cover form one class, so the cost depends
 * on the lengths of the rules and not on the product of their lists. Example: for a user with
 * `get pods` and `get nodes`, a rule of `get list watch` for `pods secrets configmaps` has the
 * classes `get` and `list watch`, `pods` and `secrets configmaps`, and takes four comparisons
 * instead of nine.
 */
function* compareRules(options: {
  readonly ownRules: readonly PolicyRule[];
  readonly grantedRules: readonly PolicyRule[];
  readonly limits: { readonly steps: number; readonly pieces: number };
}): Generator<void, Coverage> {
  const { ownRules, grantedRules, limits } = options;
  const what = 'the check for privilege escalation';
  const index = new RuleIndex(ownRules, new WorkBudget({ what, steps: limits.steps }));
  const missing: MissingPieces = { pieces: [], max: limits.pieces, count: 0 };
  for (const rule of grantedRules) {
    yield;
    yield* addMissingResources(missing, rule, index);
    yield* addMissingUrls(missing, rule, index);
  }
  const { pieces, count } = missing;
  return { covered: count === 0, missing: pieces, omitted: count - pieces.length };
}

/** Values of one list that the same own rules cover; undefined stands for no resource names. */
interface ValueClass<Value extends string | undefined = string> {
  readonly values: readonly Value[];
  readonly rules: RuleSet;
}

/** Pieces that no own rule covers: all combinations of the values of four classes. */
interface Gap {
  readonly group: ValueClass;
  readonly resource: ValueClass;
  readonly verb: ValueClass;
  readonly name: ValueClass<string | undefined>;
}

function* addMissingResources(
  found: MissingPieces,
  rule: PolicyRule,
  index: RuleIndex,
): Generator<void, void> {
  const groups = classesOf(rule.apiGroups, (value) => index.ofGroup(value));
  const resources = classesOf(rule.resources, (value) => index.ofResource(value));
  const verbs = classesOf(rule.verbs, (value) => index.ofVerb(value));
  const names = nameClasses(rule, index);
  const gaps: Gap[] = [];
  for (const group of groups) {
    for (const resource of resources) {
      const ofResource = index.common(group.rules, resource.rules);
      for (const verb of verbs) {
        yield;
        const ofVerb = index.common(ofResource, verb.rules);
        for (const name of names) {
          if (index.common(ofVerb, name.rules).size > 0) continue;
          gaps.push({ group, resource, verb, name });
        }
      }
    }
  }
  addGaps(found, rule, gaps);
}

/** Groups the values that the same own rules cover, in the order of their first values. */
function classesOf(values: readonly string[], rulesOf: (value: string) => RuleSet): ValueClass[] {
  const classes = new Map<string, { readonly values: string[]; readonly rules: RuleSet }>();
  for (const value of values) {
    const rules = rulesOf(value);
    const key = [...rules].sort((left, right) => left - right).join();
    const valueClass = classes.get(key);
    if (valueClass === undefined) classes.set(key, { values: [value], rules });
    else valueClass.values.push(value);
  }
  return [...classes.values()];
}

function nameClasses(rule: PolicyRule, index: RuleIndex): ValueClass<string | undefined>[] {
  if (rule.resourceNames.length === 0) return [{ values: [undefined], rules: index.ofAllNames() }];
  return classesOf(rule.resourceNames, (value) => index.ofName(value));
}

/** Adds the missing pieces of one rule, in the order of its values. */
function addGaps(missing: MissingPieces, rule: PolicyRule, gaps: readonly Gap[]): void {
  const lists = [rule.apiGroups, rule.resources, rule.verbs, rule.resourceNames];
  const places = lists.map(placesOf);
  const pieces: { readonly piece: PolicyRule; readonly place: readonly number[] }[] = [];
  const room = missing.max - missing.pieces.length;
  for (const gap of gaps) {
    const { group, resource, verb, name } = gap;
    missing.count += [group, resource, verb, name].reduce((n, { values }) => n * values.length, 1);
    for (const values of combinations(gap)) {
      if (pieces.length >= room) break;
      const place = values.map((value, index) => places[index]?.get(value ?? '') ?? 0);
      pieces.push({ piece: pieceOf(values), place });
    }
  }
  pieces.sort((left, right) => comparePlaces(left.place, right.place));
  for (const { piece } of pieces) missing.pieces.push(piece);
}

/** Returns the first position of each value. */
function placesOf(values: readonly string[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [index, value] of values.entries()) if (!places.has(value)) places.set(value, index);
  return places;
}

/** Group, resource, verb, and name (if any). */
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

function comparePlaces(left: readonly number[], right: readonly number[]): number {
  const index = left.findIndex((place, at) => place !== right[at]);
  return index < 0 ? 0 : (left[index] ?? 0) - (right[index] ?? 0);
}

function* addMissingUrls(
  found: MissingPieces,
  rule: PolicyRule,
  index: RuleIndex,
): Generator<void, void> {
  const { nonResourceURLs, verbs } = rule;
  const unnamed = index.ofAllNames();
  const verbRules = verbs.map((verb) => index.common(unnamed, index.ofVerb(verb)));
  for (const url of nonResourceURLs) {
    yield;
    const urlRules = index.ofUrl(url);
    for (const [place, verb] of verbs.entries()) {
      if (index.common(urlRules, itemAt(verbRules, place)).size > 0) continue;
      found.count += 1;
      if (found.pieces.length >= found.max) continue;
      found.pieces.push(policyRule({ nonResourceURLs: [url], verbs: [verb] }));
    }
  }
}

/** Upper bound of the missing pieces that a comparison for a request collects. */
const piecesMax = 1000;

/**
 * Compares rules as `ruleEscalation` does, in steps and for rules of a request: collects at most
 * 1000 missing pieces (TRUST-2).
 * @throws WorkExceeded if the own rules differ in too many ways
 */
export function boundedEscalation(
  ownRules: readonly PolicyRule[],
  grantedRules: readonly PolicyRule[],
): Iterator<void, Coverage> {
  const limits = { steps: escalationStepsMax, pieces: piecesMax };
  return compareRules({ ownRules, grantedRules, limits });
}

/** Splits a rule into pieces of one verb and one resource, with at most one name, or one path. */
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
    for (const verb of rule.verbs) {
      pieces.push(policyRule({ nonResourceURLs: [url], verbs: [verb] }));
    }
  }
  return pieces;
}

/**
 * Returns the message of the 403 for a user who would grant more than they may do themselves, as
 * kube-apiserver words it. It lists a bounded number of rules and counts the others (TRUST-3).
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

/** Joins pieces that differ only in the verb; those of paths come first and stay as they are. */
export function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const simple = new Map<string, PolicyRule & { readonly verbs: string[] }>();
  const others: PolicyRule[] = [];
  for (const rule of rules) {
    if (rule.nonResourceURLs.length > 0) {
      others.push(rule);
      continue;
    }
    const key = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames]);
    const simpleRule = simple.get(key);
    if (simpleRule === undefined) simple.set(key, { ...rule, verbs: [...rule.verbs] });
    else appendAll(simpleRule.verbs, rule.verbs);
  }
  return [...others, ...simple.values()];
}

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

const showList = (values: readonly string[]): string =>
  `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;
