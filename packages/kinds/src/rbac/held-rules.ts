import { itemAt, type WorkBudget } from '@wheelhouse/machinery';
import { type PolicyRule, trimStars } from './policy-rule.ts';

/** Rules by their index in a list of rules. */
export type RuleSet = ReadonlySet<number>;

const none: RuleSet = new Set();

/** The rules with one value, and those that have all values. */
class ValueIndex {
  readonly #exact = new Map<string, Set<number>>();
  readonly #all = new Set<number>();
  readonly #wildcard: string | undefined;
  readonly #budget: WorkBudget;

  /** @param options.wildcard the value that stands for all, if one does */
  constructor(budget: WorkBudget, options: { readonly wildcard?: string } = {}) {
    this.#budget = budget;
    this.#wildcard = options.wildcard;
  }

  get all(): RuleSet {
    return this.#all;
  }

  addToAll(rule: number): void {
    this.#all.add(rule);
  }

  add(value: string, rule: number): void {
    if (value === this.#wildcard) this.#all.add(rule);
    const present = this.#exact.get(value);
    if (present === undefined) this.#exact.set(value, new Set([rule]));
    else present.add(rule);
  }

  /** The rules that have one of the values, or all. */
  of(...values: readonly string[]): RuleSet {
    const found = values.flatMap((value) => this.#exact.get(value) ?? []);
    if (found.length === 0) return this.#all;
    this.#budget.spend(found.reduce((sum, { size }) => sum + size, this.#all.size));
    if (found.length === 1 && this.#all.size === 0) return itemAt(found, 0);
    return new Set([...this.#all, ...found.flatMap((one) => [...one])]);
  }
}

/** Rules indexed by their values: which of them cover a verb, a group, a resource, a name, a path. */
export class HeldRules {
  readonly #budget: WorkBudget;
  readonly #verbs: ValueIndex;
  readonly #groups: ValueIndex;
  readonly #resources: ValueIndex;
  readonly #names: ValueIndex;
  readonly #urls: ValueIndex;
  readonly #urlPrefixes = new Map<string, Set<number>>();

  /** @param budget is drawn on by what is asked of the index; building it takes linear time */
  constructor(rules: readonly PolicyRule[], budget: WorkBudget) {
    this.#budget = budget;
    this.#verbs = new ValueIndex(budget, { wildcard: '*' });
    this.#groups = new ValueIndex(budget, { wildcard: '*' });
    this.#resources = new ValueIndex(budget, { wildcard: '*' });
    this.#names = new ValueIndex(budget);
    this.#urls = new ValueIndex(budget, { wildcard: '*' });
    // A role that several bindings lead to gives the same rules again.
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

  /** Also the rules with every resource's subresource of this name. */
  ofResource(resource: string): RuleSet {
    const [, subresource] = resource.split('/', 2);
    if (subresource === undefined) return this.#resources.of(resource);
    return this.#resources.of(resource, `*/${subresource}`);
  }

  /** Also the rules without names, which hold for all. */
  ofName(name: string): RuleSet {
    return this.#names.of(name);
  }

  ofAllNames(): RuleSet {
    return this.#names.all;
  }

  ofUrl(url: string): RuleSet {
    this.#budget.spend(this.#urlPrefixes.size);
    const found = [...this.#urlPrefixes].flatMap(([prefix, rules]) =>
      url.startsWith(prefix) ? [rules] : [],
    );
    const exact = this.#urls.of(url);
    if (found.length === 0) return exact;
    this.#budget.spend(found.reduce((sum, { size }) => sum + size, exact.size));
    return new Set([...exact, ...found.flatMap((one) => [...one])]);
  }

  /** The rules in both sets. */
  common(one: RuleSet, other: RuleSet): RuleSet {
    const [small, large] = one.size <= other.size ? [one, other] : [other, one];
    this.#budget.spend(small.size + 1);
    if (small.size === 0) return none;
    const both = [...small].filter((rule) => large.has(rule));
    return both.length === small.size ? small : new Set(both);
  }
}
