import { childPath, indexPath } from '../schema/path.ts';
import { type CelRule, resolved, type Schema } from '../schema/schema.ts';
import { type Compiled, compile } from './compile.ts';
import type { Environment } from './environment.ts';
import { product } from './estimate.ts';
import type { Program } from './evaluator.ts';
import { CelCompileError } from './issues.ts';
import { seen, typeOfSchema, withTypeMeta } from './schema-types.ts';
import { standardFunctions } from './standard-functions.ts';
import { dynType, optionalType, type Type } from './types.ts';
import { CelError } from './values.ts';

/** A rule that was compiled. */
export interface CompiledRule {
  readonly rule: CelRule;
  readonly program: Program;
  readonly message: Program | undefined;
  /** Judges a change: without `optionalOldSelf` it is run only where there is an old value. */
  readonly usesOldSelf: boolean;
}

/** Why a rule cannot be compiled. */
export interface RuleProblem {
  readonly member: 'rule' | 'messageExpression';
  readonly detail: string;
}

/** What a rule may cost at most, as far as it could be compiled. */
export interface RuleCosts {
  readonly rule?: Compiled['costMax'];
  readonly messageExpression?: Compiled['costMax'];
}

/** The schema a rule on this node sees. */
export function selfSchema(schema: Schema, isRoot: boolean): Schema {
  const plain = resolved(schema);
  return isRoot ? withTypeMeta(plain) : seen(plain);
}

/** Compiles a node's rule, or says why it does not. */
export function compileRule(
  rule: CelRule,
  self: Type | undefined,
): (CompiledRule | { readonly problems: readonly RuleProblem[] }) & { readonly costs: RuleCosts } {
  const type = self ?? dynType;
  const old = rule.optionalOldSelf === true ? optionalType(type) : type;
  const environment: Environment = {
    functions: standardFunctions(),
    variables: new Map([
      ['self', type],
      ['oldSelf', old],
    ]),
  };
  const problems: RuleProblem[] = [];
  const main = compiled(rule.rule, environment, {
    member: 'rule',
    wanted: 'bool',
    wrongType: 'cel expression must evaluate to a bool',
    head: 'compilation failed: ',
  });
  const message =
    (rule.messageExpression ?? '').trim() === '' ? undefined : messageOf(rule, environment);
  for (const one of [main, message]) {
    if (one !== undefined && 'detail' in one) problems.push(one);
  }
  const costs: RuleCosts = {
    ...('detail' in main ? {} : { rule: main.costMax }),
    ...(message === undefined || 'detail' in message ? {} : { messageExpression: message.costMax }),
  };
  if ('detail' in main || (message !== undefined && 'detail' in message)) {
    return { problems, costs };
  }
  return {
    costs,
    rule,
    program: main.program,
    message: message?.program,
    usesOldSelf: main.used.has('oldSelf'),
  };
}

function messageOf(rule: CelRule, environment: Environment) {
  return compiled(rule.messageExpression ?? '', environment, {
    member: 'messageExpression',
    wanted: 'string',
    wrongType: 'messageExpression must evaluate to a string',
    head: 'messageExpression compilation failed: ',
  });
}

function compiled(
  source: string,
  environment: Environment,
  at: Pick<RuleProblem, 'member'> & { wanted: string; wrongType: string; head: string },
): { program: Program; used: ReadonlySet<string>; costMax: Compiled['costMax'] } | RuleProblem {
  const { member } = at;
  let made: Compiled;
  try {
    made = compile(source, environment);
  } catch (error) {
    if (error instanceof CelCompileError) return { member, detail: at.head + error.message };
    throw error;
  }
  if (made.type.name !== at.wanted) return { member, detail: at.wrongType };
  try {
    return { program: made.program(), used: made.used, costMax: made.costMax };
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return { member, detail: `program instantiation failed: ${error.message}` };
  }
}

/** A schema on the way to one with rules. */
export interface RuleNode {
  readonly schema: Schema;
  /** What rules see of it: members by their escaped names. */
  readonly self: Schema;
  readonly rules: readonly CompiledRule[];
  readonly properties: ReadonlyMap<string, RuleNode>;
  readonly additional: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

/** The schemas with rules, compiled; undefined when there are none. Broken rules are left out. */
export function ruleNode(given: Schema, name: string): RuleNode | undefined {
  const schema = resolved(given);
  const self = selfSchema(schema, name === rootName);
  const properties = new Map<string, RuleNode>();
  for (const [member, property] of schema.properties ?? []) {
    const node = ruleNode(property.schema, `${name}.${member}`);
    if (node !== undefined) properties.set(member, node);
  }
  const { additionalProperties: more } = schema;
  const additional = more === undefined ? undefined : ruleNode(more, `${name}.@elem`);
  const items = schema.items === undefined ? undefined : ruleNode(schema.items, `${name}.@idx`);
  const rules = rulesOf(schema, self, name);
  const isEmpty =
    rules.length + properties.size === 0 && additional === undefined && items === undefined;
  return isEmpty ? undefined : { schema, self, rules, properties, additional, items };
}

/** How types of a whole object's members are named. */
export const rootName = 'selfType';

function rulesOf(schema: Schema, self: Schema, name: string): readonly CompiledRule[] {
  const { rules = [] } = schema;
  if (rules.length === 0) return [];
  const type = typeOfSchema(self, name);
  return rules.flatMap((rule) => {
    const made = compileRule(rule, type);
    return 'problems' in made ? [] : [made];
  });
}

/** Every schema with its path in the definition, outermost first. */
export interface SchemaPlace {
  readonly schema: Schema;
  readonly path: string;
  readonly name: string;
  /** The path of the list or map whose items have no old values of their own. */
  readonly uncorrelatable: string | undefined;
  /** How many such values an object has at most; undefined when nothing bounds them. */
  readonly cardinality: number | undefined;
}

/** Walks a schema with its place in the definition. */
export function* placesOf(at: SchemaPlace): Generator<SchemaPlace> {
  const schema = resolved(at.schema);
  yield { ...at, schema };
  // A type of map that is not known, which other rules refuse, counts as one without old members.
  const isAtomic = (schema.mapType ?? 'granular') !== 'granular';
  const inside = isAtomic ? (at.uncorrelatable ?? at.path) : at.uncorrelatable;
  const cardinality = cardinalityInside(schema, at.cardinality);
  for (const [member, property] of schema.properties ?? []) {
    const path = `${childPath(at.path, 'properties')}[${member}]`;
    const name = `${at.name}.${member}`;
    yield* placesOf({
      schema: property.schema,
      path,
      name,
      uncorrelatable: inside,
      cardinality,
    });
  }
  if (schema.additionalProperties !== undefined) {
    const path = childPath(at.path, 'additionalProperties');
    const name = `${at.name}.@elem`;
    const more = schema.additionalProperties;
    yield* placesOf({ schema: more, path, name, uncorrelatable: inside, cardinality });
  }
  if (schema.items !== undefined) {
    const path = childPath(at.path, 'items');
    const name = `${at.name}.@idx`;
    const uncorrelatable =
      schema.listType === 'map' ? at.uncorrelatable : (at.uncorrelatable ?? at.path);
    yield* placesOf({ schema: schema.items, path, name, uncorrelatable, cardinality });
  }
}

/** How many values of its parts a schema allows, by how many there are of its own. */
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
