import {
  type CelRule,
  childPath,
  indexPath,
  type PatternAge,
  resolved,
  type Schema,
} from '@wheelhouse/schema';
import { type Compiled, compileSteps } from './compile.ts';
import { product } from './cost/estimate.ts';
import type { Program } from './evaluator.ts';
import { CelCompileError } from './issues.ts';
import type { Environment } from './types/environment.ts';
import {
  escapeName,
  schemaOfValues,
  typeOfSchema,
  visibleSchema,
  withTypeMeta,
} from './types/schema-types.ts';
import { standardFunctions } from './types/standard-functions.ts';
import { dynType, optionalType, type Type } from './types/types.ts';
import { CelError } from './values.ts';

/** A compiled rule. */
export interface CompiledRule {
  readonly rule: CelRule;
  readonly program: Program;
  readonly message: Program | undefined;
  /** Why its message expression does not compile. */
  readonly problem?: RuleProblem;
  /**
   * Whether it is a transition rule: without `optionalOldSelf` it runs only if there is an old
   * value.
   */
  readonly usesOldSelf: boolean;
}

/** Why a rule cannot be compiled. */
interface RuleProblem {
  readonly member: 'rule' | 'messageExpression';
  readonly detail: string;
  /** Whether the rule is empty and is not run. */
  readonly isEmpty?: boolean;
  /** Used variables, if it type-checks. */
  readonly used?: ReadonlySet<string>;
}

/** The maximum cost of a rule, as far as it compiles. */
interface RuleCosts {
  readonly rule?: Compiled['costSteps'];
  readonly messageExpression?: Compiled['costSteps'];
}

/** An expression of a rule that compiles. */
interface UsableExpression extends Pick<Compiled, 'used' | 'costSteps'> {
  readonly program: Program;
}

/** The schema that a rule on this node sees. */
export function selfSchema(schema: Schema, isRoot: boolean): Schema {
  const plain = resolved(schema);
  return isRoot ? withTypeMeta(plain) : visibleSchema(plain);
}

/** A rule that does not compile, with partial results. */
interface BrokenRule {
  readonly problem: RuleProblem;
  readonly program?: undefined;
  readonly usesOldSelf: boolean;
}

/** Compiles a rule of a node in steps (TRUST-2), or returns why it does not compile. */
export function* compileRule(
  rule: CelRule,
  self: Type | undefined,
  patterns: PatternAge,
): Generator<void, (CompiledRule | BrokenRule) & { readonly costs: RuleCosts }> {
  const type = self ?? dynType;
  const old = rule.optionalOldSelf === true ? optionalType(type) : type;
  const variables = new Map([
    ['self', type],
    ['oldSelf', old],
  ]);
  const environment: Environment = { functions: standardFunctions(), variables, patterns };
  const main = yield* compiled(rule.rule, environment, {
    member: 'rule',
    typeName: 'bool',
    wrongType: 'cel expression must evaluate to a bool',
    head: 'compilation failed: ',
  });
  const usesOldSelf = main.used?.has('oldSelf') ?? false;
  if ('detail' in main) {
    const isEmpty = rule.rule.trim() === '';
    return { problem: { ...main, isEmpty }, usesOldSelf, costs: {} };
  }
  const { messageExpression = '' } = rule;
  const message = messageExpression.trim() === '' ? undefined : yield* messageOf(rule, environment);
  const costs = { rule: main.costSteps };
  const common = { rule, program: main.program, usesOldSelf };
  if (message === undefined) return { ...common, message, costs };
  if ('detail' in message) return { ...common, message: undefined, problem: message, costs };
  return {
    ...common,
    message: message.program,
    costs: { ...costs, messageExpression: message.costSteps },
  };
}

function messageOf(rule: CelRule, environment: Environment) {
  return compiled(rule.messageExpression ?? '', environment, {
    member: 'messageExpression',
    typeName: 'string',
    wrongType: 'messageExpression must evaluate to a string',
    head: 'messageExpression compilation failed: ',
  });
}

function* compiled(
  source: string,
  environment: Environment,
  at: Pick<RuleProblem, 'member'> & { typeName: string; wrongType: string; head: string },
): Generator<void, UsableExpression | RuleProblem> {
  const { member } = at;
  let expression: Compiled;
  try {
    expression = yield* compileSteps(source, environment);
  } catch (error) {
    if (error instanceof CelCompileError) return { member, detail: at.head + error.message };
    throw error;
  }
  if (expression.type.name !== at.typeName) return { member, detail: at.wrongType };
  try {
    const program = yield* expression.programSteps();
    return { program, used: expression.used, costSteps: expression.costSteps };
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    const what = member === 'rule' ? 'program' : member;
    const detail = `${what} instantiation failed: ${error.message}`;
    return { member, detail, used: expression.used };
  }
}

/** A schema that has rules or contains one that has. */
export interface RuleNode {
  readonly schema: Schema;
  /** The type that rules see, with members by their escaped names. */
  readonly self: Schema;
  readonly rules: readonly (CompiledRule | BrokenRule)[];
  /** Whether it has rules although the type of its values is unknown. */
  readonly isUntyped: boolean;
  readonly properties: ReadonlyMap<string, RuleNode>;
  readonly additional: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

/** Compiles the rules of a schema in steps (TRUST-2); undefined if there are none. */
export function* ruleNode(
  schema: Schema,
  at: { readonly isRoot: boolean; readonly patterns: PatternAge },
): Generator<void, RuleNode | undefined> {
  const { isRoot, patterns } = at;
  const isTyped = typeOfSchema(selfSchema(schema, isRoot), selfName) !== undefined;
  return yield* nodeAt(resolved(schema), { isRoot, isTyped, patterns });
}

function* nodeAt(
  schema: Schema,
  at: { readonly isRoot: boolean; readonly isTyped: boolean; readonly patterns: PatternAge },
): Generator<void, RuleNode | undefined> {
  const { isTyped, patterns } = at;
  const self = selfSchema(schema, at.isRoot);
  const properties = new Map<string, RuleNode>();
  for (const [member, property] of schema.properties ?? []) {
    if (!isTyped && escapeName(member) !== undefined) continue;
    // Rules do not see members of unknown type, so rules inside are not run either.
    if (typeOfSchema(property.schema, selfName) === undefined) continue;
    const node = yield* nodeAt(resolved(property.schema), {
      isRoot: false,
      isTyped: true,
      patterns,
    });
    if (node !== undefined) properties.set(member, node);
  }
  // Only a list has an element type, and only a map has a value type.
  function* below(part: Schema | undefined, type: 'array' | 'object') {
    if (part === undefined) return undefined;
    return yield* nodeAt(resolved(part), {
      isRoot: false,
      isTyped: isTyped && schema.type === type,
      patterns,
    });
  }
  const additional = yield* below(schemaOfValues(schema), 'object');
  const items = yield* below(schema.items, 'array');
  const isUntyped = !isTyped && (schema.rules ?? []).length > 0;
  const rules = isUntyped ? [] : yield* rulesOf(schema, self, patterns);
  const isEmpty =
    rules.length + properties.size === 0 && additional === undefined && items === undefined;
  if (isEmpty && !isUntyped) return undefined;
  return { schema, self, rules, isUntyped, properties, additional, items };
}

/** The name of the type at a rule; the types of its members are named by paths from there. */
export const selfName = 'selfType';

function* rulesOf(
  schema: Schema,
  self: Schema,
  patterns: PatternAge,
): Generator<void, readonly (CompiledRule | BrokenRule)[]> {
  const { rules = [] } = schema;
  if (rules.length === 0) return [];
  const type = typeOfSchema(self, selfName);
  const compiledRules: (CompiledRule | BrokenRule)[] = [];
  for (const rule of rules) {
    yield;
    compiledRules.push(yield* compileRule(rule, type, patterns));
  }
  return compiledRules;
}

/** A schema with its path in the definition. */
export interface SchemaPlace {
  readonly schema: Schema;
  readonly path: string;
  readonly isRoot: boolean;
  /** The path of the list or map whose items have no old values. */
  readonly uncorrelatable: string | undefined;
  /**
   * Source of the type that rules see: the schema itself, the type of an enclosing schema with
   * rules, or nothing if that type has no elements (`items` of an object).
   */
  readonly typeFrom: 'itself' | 'enclosing' | 'nothing';
  /** Maximum number of such values in an object; undefined if unlimited. */
  readonly cardinality: number | undefined;
}

/** Visits a schema with its place in the definition, innermost first. */
export function* placesOf(at: SchemaPlace): Generator<SchemaPlace> {
  const schema = resolved(at.schema);
  if (!hasRules(schema)) return;
  // An unknown map type, which validation rejects, counts as one without old members.
  const isOdd = !['atomic', 'granular'].includes(schema.mapType ?? 'granular');
  const inside = isOdd ? (at.uncorrelatable ?? at.path) : at.uncorrelatable;
  const cardinality = cardinalityInside(schema, at.cardinality);
  const below = { isRoot: false, cardinality };
  const elementsFrom = elementTypeFrom(schema, at.typeFrom);
  const membersFrom = elementsFrom === 'nothing' ? memberTypeFrom(at.typeFrom) : elementsFrom;
  if (schema.additionalProperties !== undefined) {
    const path = childPath(at.path, 'additionalProperties');
    const more = schema.additionalProperties;
    const { uncorrelatable } = at;
    yield* placesOf({ ...below, schema: more, path, uncorrelatable, typeFrom: elementsFrom });
  }
  for (const [member, property] of schema.properties ?? []) {
    const path = `${childPath(at.path, 'properties')}[${member}]`;
    const { schema: part } = property;
    yield* placesOf({
      ...below,
      schema: part,
      path,
      uncorrelatable: inside,
      typeFrom: membersFrom,
    });
  }
  if (schema.items !== undefined) {
    const path = childPath(at.path, 'items');
    const uncorrelatable =
      schema.listType === 'map' ? at.uncorrelatable : (at.uncorrelatable ?? at.path);
    const { items } = schema;
    yield* placesOf({ ...below, schema: items, path, uncorrelatable, typeFrom: elementsFrom });
  }
  yield { ...at, schema };
}

/** Source of the type of a schema's items and values. */
function elementTypeFrom(schema: Schema, own: SchemaPlace['typeFrom']): SchemaPlace['typeFrom'] {
  if (own === 'itself' && (schema.rules ?? []).length === 0) return 'itself';
  const isMap = schema.type === 'object' && schemaOfValues(schema) !== undefined;
  const hasElements = schema.type === 'array' || isMap;
  return own !== 'nothing' && hasElements ? 'enclosing' : 'nothing';
}

/** Source of the type of a schema's members. A member that the enclosing type lacks has its own. */
const memberTypeFrom = (own: SchemaPlace['typeFrom']): SchemaPlace['typeFrom'] =>
  own === 'nothing' ? 'nothing' : 'enclosing';

/** The schemas that have rules or contain some: most parts of a large definition have none. */
const withRules = new WeakMap<Schema, boolean>();

function hasRules(schema: Schema): boolean {
  const plain = resolved(schema);
  const before = withRules.get(plain);
  if (before !== undefined) return before;
  const { rules = [], items, additionalProperties, properties } = plain;
  let isFound =
    rules.length > 0 ||
    (items !== undefined && hasRules(items)) ||
    (additionalProperties !== undefined && hasRules(additionalProperties));
  for (const property of properties?.values() ?? []) {
    if (isFound) break;
    isFound = hasRules(property.schema);
  }
  withRules.set(plain, isFound);
  return isFound;
}

/** Maximum number of values of a schema's parts, given the number of its own values. */
function cardinalityInside(schema: Schema, own: number | undefined): number | undefined {
  const { type, additionalProperties, validation = {} } = schema;
  let factor: number | undefined = 1;
  if (type === 'array') factor = validation.maxItems;
  else if (type === 'object' && additionalProperties !== undefined) {
    factor = validation.maxProperties;
  }
  return own === undefined || factor === undefined ? undefined : product(own, Math.max(factor, 0));
}

/** `path.x-kubernetes-validations[0]`. */
export function rulePath(path: string, index: number): string {
  return indexPath(childPath(path, 'x-kubernetes-validations'), index);
}
