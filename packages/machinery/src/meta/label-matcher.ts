/** What labels look like to a selector. Values of another type than text never match. */
export type LabelSet = Readonly<Record<string, string>>;

export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

/** One condition on one label. `values` is sorted, without doubles, and fits the operator. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values: readonly string[];
}

type Matcher = (labels: LabelSet) => boolean;

/** Up to this many requirements, testing each in turn is faster than a plan. */
const plainMax = 4;

/**
 * The predicate that demands all of `requirements`. It costs one look-up per label of the object or
 * per requirement, whichever are fewer, and none per value (TRUST-2, TRUST-4).
 */
export function labelMatcher(requirements: readonly LabelRequirement[]): Matcher {
  if (requirements.length > plainMax) return plannedMatcher(requirements);
  const predicates = requirements.map(predicateOf);
  const [first, second] = predicates;
  if (first === undefined) return () => true;
  if (second === undefined) return first;
  return (labels) => predicates.every((predicate) => predicate(labels));
}

/** Everything that a selector demands of one key. */
interface KeyPlan {
  isRequired: boolean;
  isForbidden: boolean;
  /** Values it may have; undefined: any. */
  allowed: ReadonlySet<string> | undefined;
  excluded: Set<string> | undefined;
  above: bigint | undefined;
  below: bigint | undefined;
}

function plannedMatcher(requirements: readonly LabelRequirement[]): Matcher {
  const plans = new Map<string, KeyPlan>();
  for (const requirement of requirements) {
    let plan = plans.get(requirement.key);
    if (plan === undefined) {
      plan = emptyPlan();
      plans.set(requirement.key, plan);
    }
    addTo(plan, requirement);
  }
  const required = [...plans].filter(([, plan]) => plan.isRequired).map(([key]) => key);
  return (labels) => {
    // Fails at the first key that the object lacks, so it looks at no more keys than the object has.
    for (const key of required) if (!Object.hasOwn(labels, key)) return false;
    for (const key of Object.keys(labels)) {
      const plan = plans.get(key);
      if (plan !== undefined && !fits(plan, labels[key] ?? '')) return false;
    }
    return true;
  };
}

function emptyPlan(): KeyPlan {
  return {
    isRequired: false,
    isForbidden: false,
    allowed: undefined,
    excluded: undefined,
    above: undefined,
    below: undefined,
  };
}

function addTo(plan: KeyPlan, { operator, values }: LabelRequirement): void {
  const [value = ''] = values;
  switch (operator) {
    case '!=':
    case 'notin':
      plan.excluded ??= new Set();
      for (const one of values) plan.excluded.add(one);
      return;
    case '!':
      plan.isForbidden = true;
      return;
    case '=':
    case '==':
    case 'in': {
      const before = plan.allowed;
      const own = operator === 'in' ? values : [value];
      plan.allowed = new Set(before === undefined ? own : own.filter((one) => before.has(one)));
      break;
    }
    case 'gt':
    case 'lt':
      addBound(plan, operator, parseInt64(value));
      break;
    case 'exists':
      break;
  }
  plan.isRequired = true;
}

function addBound(plan: KeyPlan, operator: 'gt' | 'lt', bound: bigint | undefined): void {
  if (bound === undefined) plan.allowed = new Set();
  else if (operator === 'gt') {
    if (plan.above === undefined || bound > plan.above) plan.above = bound;
  } else if (plan.below === undefined || bound < plan.below) plan.below = bound;
}

function fits(plan: KeyPlan, value: string): boolean {
  const { isForbidden, allowed, excluded, above, below } = plan;
  if (isForbidden || allowed?.has(value) === false || excluded?.has(value) === true) {
    return false;
  }
  if (above === undefined && below === undefined) return true;
  const actual = parseInt64(value);
  if (actual === undefined) return false;
  return (above === undefined || actual > above) && (below === undefined || actual < below);
}

function predicateOf(requirement: LabelRequirement): Matcher {
  const { key, values } = requirement;
  const [value = ''] = values;
  const has = (labels: LabelSet) => Object.hasOwn(labels, key);
  switch (requirement.operator) {
    case '=':
    case '==':
      return (labels) => has(labels) && labels[key] === value;
    case '!=':
      return (labels) => !has(labels) || labels[key] !== value;
    case 'in': {
      const allowed = new Set(values);
      return (labels) => has(labels) && allowed.has(labels[key] ?? '');
    }
    case 'notin': {
      const excluded = new Set(values);
      return (labels) => !has(labels) || !excluded.has(labels[key] ?? '');
    }
    case 'exists':
      return has;
    case '!':
      return (labels) => !has(labels);
    case 'gt':
    case 'lt':
      return comparison(requirement, value);
  }
}

function comparison({ key, operator }: LabelRequirement, value: string): Matcher {
  const bound = parseInt64(value);
  return (labels) => {
    const actual = Object.hasOwn(labels, key) ? parseInt64(labels[key] ?? '') : undefined;
    if (actual === undefined || bound === undefined) return false;
    return operator === 'gt' ? actual > bound : actual < bound;
  };
}

/** Go's 64-bit integer in decimal; undefined for anything else. */
export function parseInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d{1,63}$/.test(text)) return undefined;
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
