import { appendAll, itemAt } from '@wheelhouse/machinery';
import type { Issue } from './issues.ts';
import { inPasses, type Pass } from './passes.ts';
import {
  type BindExpr,
  type CallExpr,
  type Expr,
  type FoldExpr,
  type FoldName,
  type IdentExpr,
  type Literal,
  type MapExpr,
  type OptionalMapExpr,
  qualifiedName,
  type SelectExpr,
  type StructExpr,
} from './syntax/ast.ts';
import { enumValues } from './syntax/messages.ts';
import { type Environment, namespacedName, structNamed, typeNames } from './types/environment.ts';
import type { Overload } from './types/functions.ts';
import {
  boolType,
  bytesType,
  composite,
  containsParameters,
  doubleType,
  dynType,
  errorType,
  intType,
  isAssignable,
  isDyn,
  listType,
  mapType,
  moreGeneral,
  nullType,
  optionalType,
  Substitution,
  showType,
  stringType,
  substituted,
  type Type,
  TypesTooLarge,
  typeType,
  uintType,
} from './types/types.ts';

/** The result of type checking one expression; `issues` is empty if it compiles. */
export interface Checked {
  /** Type of the result; dyn if unknown. */
  readonly type: Type;
  readonly issues: readonly Issue[];
  /** Used variables of the environment. */
  readonly used: ReadonlySet<string>;
  /** Type of every subexpression; dyn if unknown. */
  readonly types: Pick<ReadonlyMap<Expr, Type>, 'get'>;
  /** Candidate overloads of each call. */
  readonly overloads: ReadonlyMap<CallExpr, readonly Overload[]>;
}

/**
 * Determines the type of every subexpression and all type errors.
 * @param pass divides the work for a long expression
 */
export function* checkSteps(
  expr: Expr,
  environment: Environment,
  pass?: Pass<Expr, Type>,
): Generator<void, Checked> {
  const checker = new Checker(environment, pass);
  const type = yield* inPasses(pass, () => checker.whole(expr));
  const { used, overloads } = checker;
  return { type, issues: checker.issues, used, types: checker.types, overloads };
}

/** Variables of macros, innermost first. */
interface Scope {
  readonly name: string;
  readonly type: Type;
  readonly outer: Scope | undefined;
}

/** The common types of the first elements of a list or map. */
interface Joined {
  readonly count: number;
  readonly key?: Type | undefined;
  readonly value: Type | undefined;
  /** Number of type parameters behind these elements. */
  readonly parameters: number;
}

/** Maximum number of types in the type of a subexpression. */
const typesMax = 1_000;

/** Maximum number of issues of which an enclosing macro repeats some, as many as cel-go reports. */
const repeatedIssuesMax = 100;

/** Visited types that count as much work in a pass as a subexpression. */
const typesPerWork = 10;

/** Holds the bindings of type parameters and the issues. */
class Checker {
  readonly used = new Set<string>();
  readonly overloads = new Map<CallExpr, readonly Overload[]>();
  /** Issues with the subexpressions that they are about, which may be unfinished in a pass. */
  #issues: { readonly issue: Issue; readonly expr: Expr | undefined }[] = [];
  /** The subexpression that is being checked. */
  #current: Expr | undefined;
  readonly #types = new Map<Expr, Type>();
  readonly #environment: Environment;
  readonly #pass: Pass<Expr, Type> | undefined;
  readonly #substitution = new Substitution();
  /** The types of the first elements of lists and maps that the pass has not finished. */
  readonly #joins = new Map<Expr, Joined>();
  /** Visited types that the pass has counted as work. */
  #counted = 0;
  /** Number of type parameters so far. */
  #fresh = 0;
  /** The same behind each subexpression that the pass has finished. */
  readonly #freshBehind = new Map<Expr, number>();

  constructor(environment: Environment, pass: Pass<Expr, Type> | undefined) {
    this.#environment = environment;
    this.#pass = pass;
  }

  get issues(): readonly Issue[] {
    return this.#issues.map(({ issue }) => issue);
  }

  /** The type of every subexpression, without parameters. */
  readonly types: Checked['types'] = {
    get: (expr) => {
      const type = this.#types.get(expr);
      if (type === undefined || !containsParameters(type)) return type;
      const finished = this.#finishedOrDyn(type);
      this.#types.set(expr, finished);
      return finished;
    },
  };

  whole(expr: Expr): Type {
    // Subexpressions that the last pass has not finished report their issues again.
    this.#issues = this.#issues.filter(
      (candidate) => candidate.expr === undefined || this.#types.has(candidate.expr),
    );
    this.#current = expr;
    this.#fresh = 0;
    try {
      return this.#finished(this.typeOf(expr, undefined));
    } catch (error) {
      if (!(error instanceof TypesTooLarge)) throw error;
      return this.#error(this.#current.at, 'the types of the expression are too large');
    }
  }

  #finished(type: Type): Type {
    return substituted(type, this.#substitution, 'dyn');
  }

  /** The same, but dyn for a type that is too large. */
  #finishedOrDyn(type: Type): Type {
    try {
      return this.#finished(type);
    } catch (error) {
      if (error instanceof TypesTooLarge) return dynType;
      throw error;
    }
  }

  typeOf(expr: Expr, scope: Scope | undefined): Type {
    const pass = this.#pass;
    const finished = pass?.resultOf(expr);
    if (finished !== undefined) {
      this.#fresh = this.#freshBehind.get(expr) ?? this.#fresh;
      return finished;
    }
    const outer = this.#current;
    this.#current = expr;
    const type = this.#find(expr, scope);
    if ((type.inner ?? 0) > typesMax) throw new TypesTooLarge();
    this.#current = outer;
    this.#types.set(expr, type);
    if (pass !== undefined) {
      const { visited } = this.#substitution;
      pass.finish(expr, type, 1 + (visited - this.#counted) / typesPerWork);
      this.#counted = visited;
      this.#freshBehind.set(expr, this.#fresh);
    }
    return type;
  }

  #find(expr: Expr, scope: Scope | undefined): Type {
    switch (expr.kind) {
      case 'const':
        return typeOfLiteral(expr.value);
      case 'ident':
        return this.#ident(expr, scope);
      case 'select':
        return this.#select(expr, scope);
      case 'call':
        return this.#call(expr, scope);
      case 'list':
        return this.#list(expr, scope);
      case 'map':
        return this.#map(expr, scope);
      case 'fold':
        return this.#fold(expr, scope);
      case 'optionalMap':
        return this.#optionalMap(expr, scope);
      case 'bind':
        return this.#bind(expr, scope);
      case 'struct':
        return this.#struct(expr, scope);
    }
  }

  #error(at: number, message: string): Type {
    this.#issues.push({ issue: { at, message }, expr: this.#current });
    return errorType;
  }

  #undeclared(at: number, name: string): Type {
    return this.#error(at, `undeclared reference to '${name}' (in container '')`);
  }

  #show(type: Type): string {
    return showType(this.#finished(type));
  }

  /** A type parameter, which some messages name like cel-go. */
  #newParameter(): Type {
    this.#fresh += 1;
    return parameterAt(this.#fresh - 1);
  }

  /** Counts type parameters that only cel-go creates, for calls that macros stand for. */
  #skipParameters(count: number): void {
    this.#fresh += count;
  }

  #lookup(name: string, scope: Scope | undefined): Type | undefined {
    for (let at = scope; at !== undefined; at = at.outer) if (at.name === name) return at.type;
    const type = this.#environment.variables.get(name);
    if (type !== undefined) this.used.add(name);
    const named = typeNames.get(name);
    return type ?? (named === undefined ? undefined : typeType(named));
  }

  #ident({ name, at }: IdentExpr, scope: Scope | undefined): Type {
    return this.#lookup(name.replace(/^\./, ''), scope) ?? this.#undeclared(at, name);
  }

  #select(expr: SelectExpr, scope: Scope | undefined): Type {
    const qualified = qualifiedName(expr);
    const named = qualified === undefined ? undefined : typeNames.get(qualified.replace(/^\./, ''));
    if (named !== undefined) return typeType(named);
    if (qualified !== undefined && enumValues.has(qualified)) return intType;
    // The name of a variable may contain a dot.
    if (qualified !== undefined && this.#environment.variables.has(qualified)) {
      return this.#lookup(qualified, undefined) ?? errorType;
    }
    const operand = this.#resolved(this.typeOf(expr.operand, scope));
    const isOptional = operand.name === 'optional_type';
    const target = this.#resolved(isOptional ? (operand.args[0] ?? dynType) : operand);
    const field = this.#field(target, expr);
    if (expr.test) return boolType;
    return isOptional || expr.optional ? optionalType(field) : field;
  }

  #resolved(type: Type): Type {
    return substituted(type, this.#substitution, 'keep');
  }

  #field(target: Type, { at, field }: SelectExpr): Type {
    if (target.fields !== undefined) {
      return target.fields.get(field) ?? this.#error(at, `undefined field '${field}'`);
    }
    if (target.name === 'map') return target.args[1] ?? dynType;
    // A value whose type is still open has any type from now on.
    if (target.isParameter) isAssignable(dynType, target, this.#substitution);
    if (isDyn(target) || target.isParameter || target.name === '!error!') return dynType;
    const shown = this.#show(target);
    // Objects of these types have functions but no fields.
    if (target.name.startsWith('kubernetes.')) {
      return this.#error(at, `unexpected failed resolution of '${shown}'`);
    }
    this.#error(at, `type '${shown}' does not support field selection`);
    return dynType;
  }

  #call(expr: CallExpr, scope: Scope | undefined): Type {
    const { functions } = this.#environment;
    const namespaced = namespacedName(expr, functions);
    const name = namespaced ?? expr.name;
    const target = namespaced === undefined ? expr.target : undefined;
    const args = expr.args.map((arg) => this.typeOf(arg, scope));
    const receiver = target === undefined ? undefined : this.typeOf(target, scope);
    const overloads = functions.get(name);
    if (overloads === undefined) {
      return this.#undeclared(expr.at, expr.isAbsolute === true ? `.${name}` : name);
    }
    if (name === '_&&_' || name === '_||_') this.#mustAllBeBool(expr.args);
    const argumentTypes = receiver === undefined ? args : [receiver, ...args];
    const resultType = this.#overload(expr, overloads, argumentTypes);
    if (resultType !== undefined) return resultType;
    if (name === '_&&_' || name === '_||_') return errorType;
    const shown = `(${args.map((arg) => this.#show(arg)).join(', ')})`;
    const applied = receiver === undefined ? shown : `${this.#show(receiver)}.${shown}`;
    return this.#error(expr.at, `found no matching overload for '${name}' applied to '${applied}'`);
  }

  #overload(
    expr: CallExpr,
    overloads: readonly Overload[],
    argumentTypes: readonly Type[],
  ): Type | undefined {
    const isMember = argumentTypes.length > expr.args.length;
    const matching: Overload[] = [];
    this.overloads.set(expr, matching);
    let result: Type | undefined;
    for (const overload of overloads) {
      const { isRunTimeOnly, params: declared } = overload;
      if (overload.isMember !== isMember || isRunTimeOnly) continue;
      if (declared.length !== argumentTypes.length) {
        if (overload.isGeneric) this.#skipParameters(parametersOf(overload).size);
        continue;
      }
      const bindings = this.#substitution;
      const { size } = bindings;
      const { params, result: type } = this.#instance(overload);
      if (!areAssignable(argumentTypes, params, bindings)) {
        bindings.undo(size);
        continue;
      }
      matching.push(overload);
      if (result === undefined) result = this.#resolved(type);
      else {
        // Results with different type parameters differ.
        const shown = showType(this.#resolved(type));
        bindings.undo(size);
        if (showType(result) !== shown) result = dynType;
      }
    }
    return result;
  }

  #instance(overload: Overload): { readonly params: readonly Type[]; readonly result: Type } {
    if (!overload.isGeneric) return overload;
    const fresh = new Map<string, Type>();
    const renew = (type: Type): Type => {
      if (type.isParameter) {
        const parameter = fresh.get(type.name) ?? this.#newParameter();
        fresh.set(type.name, parameter);
        return parameter;
      }
      return type.isOpen ? composite(type.name, type.args.map(renew)) : type;
    };
    return { params: overload.params.map(renew), result: renew(overload.result) };
  }

  #list(expr: Extract<Expr, { kind: 'list' }>, scope: Scope | undefined): Type {
    let { count, value: item } = this.#joinedBefore(expr);
    for (; count < expr.items.length; count += 1) {
      const { value, optional } = itemAt(expr.items, count);
      item = this.#joined(item, this.#element(value, { optional, scope }));
      this.#keepJoined(expr, { count: count + 1, value: item });
    }
    return listType(item ?? this.#newParameter());
  }

  /** What an earlier attempt of the pass found out about the elements of a list or map. */
  #joinedBefore(expr: Expr): Omit<Joined, 'parameters'> {
    const joined = this.#joins.get(expr);
    if (joined === undefined) return { count: 0, key: undefined, value: undefined };
    this.#fresh = joined.parameters;
    return joined;
  }

  #keepJoined(expr: Expr, joined: Omit<Joined, 'parameters'>): void {
    if (this.#pass !== undefined) this.#joins.set(expr, { ...joined, parameters: this.#fresh });
  }

  /** An element after a question mark is optional. */
  #element(expr: Expr, at: { optional: boolean; scope: Scope | undefined }): Type {
    const type = this.typeOf(expr, at.scope);
    if (!at.optional) return type;
    const resolved = this.#resolved(type);
    if (resolved.name === 'optional_type') return resolved.args[0] ?? dynType;
    if (!isDyn(resolved)) this.#mismatch(expr, optionalType(resolved), resolved);
    return resolved;
  }

  /** The issue of a checked subexpression whose type is not the expected one. */
  #mismatch(expr: Expr, expected: Type, actual: Type): Type {
    const message = `expected type '${showType(expected)}' but found '${showType(actual)}'`;
    this.#issues.push({ issue: { at: expr.at, message }, expr });
    return errorType;
  }

  /** The type of the elements so far; whether all have the same one is checked later. */
  #joined(before: Type | undefined, type: Type): Type {
    if (before === undefined) return type;
    if (
      isAssignable(before, type, this.#substitution) ||
      isAssignable(type, before, this.#substitution)
    ) {
      return moreGeneral(before, type);
    }
    return dynType;
  }

  #struct(expr: StructExpr, scope: Scope | undefined): Type {
    const name = expr.name.replace(/^\./, '');
    const struct = structNamed(name, this.#environment);
    if (struct === undefined) {
      return typeNames.has(name)
        ? this.#error(expr.at, `'${name}' is not a message type`)
        : this.#undeclared(expr.at, expr.name);
    }
    for (const field of expr.fields) {
      const type = this.#element(field.value, { optional: field.optional, scope });
      const fieldType = struct.field(field.name);
      if (fieldType === undefined) this.#error(field.at, `undefined field '${field.name}'`);
      else if (!isAssignable(type, fieldType, this.#substitution)) {
        const shown = `expected type of field '${field.name}' is '${this.#show(fieldType)}'`;
        this.#error(field.at, `${shown} but provided type is '${this.#show(type)}'`);
      }
    }
    return struct.type;
  }

  #map(expr: MapExpr, scope: Scope | undefined): Type {
    let { count, key, value } = this.#joinedBefore(expr);
    for (; count < expr.entries.length; count += 1) {
      const entry = itemAt(expr.entries, count);
      const keyType = this.typeOf(entry.key, scope);
      const type = this.#element(entry.value, { optional: entry.optional, scope });
      key = this.#joined(key, keyType);
      value = this.#joined(value, type);
      this.#keepJoined(expr, { count: count + 1, key, value });
    }
    return mapType(key ?? this.#newParameter(), value ?? this.#newParameter());
  }

  #fold(expr: FoldExpr, scope: Scope | undefined): Type {
    const range = this.#resolved(this.typeOf(expr.range, scope));
    const [key, value] = this.#elements(range, expr);
    const [first = '', second] = expr.variables;
    const isList = range.name === 'list';
    const firstType = second === undefined && isList ? value : key;
    let inner: Scope = { name: first, type: firstType, outer: scope };
    if (second !== undefined) inner = { name: second, type: value, outer: inner };
    const macro = expr.filter === undefined ? expr.name : (`${expr.name}/filter` as const);
    const [before, behind] = macroParameters[macro] ?? [0, 0];
    this.#skipParameters(before);
    const filter = expr.filter === undefined ? boolType : this.typeOf(expr.filter, inner);
    const body = this.typeOf(expr.body, inner);
    this.#skipParameters(behind);
    const result = this.#foldResult(expr, { body, range, firstType, key });
    this.#mustBeBool(expr, filter, result);
    return result;
  }

  #elements(range: Type, expr: FoldExpr): [Type, Type] {
    if (range.name === 'list') return [intType, range.args[0] ?? dynType];
    if (range.name === 'map') return [range.args[0] ?? dynType, range.args[1] ?? dynType];
    if (isDyn(range) || range.name === '!error!') return [dynType, dynType];
    if (range.isParameter) {
      isAssignable(dynType, range, this.#substitution);
      return [dynType, dynType];
    }
    const shown = showType(range);
    const why = `expression of type '${shown}' cannot be range of a comprehension`;
    this.#error(expr.range.at, `${why} (must be list, map, or dynamic)`);
    return [errorType, errorType];
  }

  /** Each operand that is not a bool is reported separately. */
  #mustAllBeBool(exprs: readonly Expr[]): void {
    for (const expr of exprs) {
      const type = this.#types.get(expr) ?? dynType;
      if (!isAssignable(type, boolType, this.#substitution)) this.#mismatch(expr, boolType, type);
    }
  }

  /** Validates the condition of a fold, which chooses between two results of the same type. */
  #mustBeBool(expr: FoldExpr, type: Type, result: Type): void {
    if (isAssignable(type, boolType, this.#substitution)) return;
    const [condition, branch] = [this.#show(type), this.#show(result)];
    const shown = `(${condition}, ${branch}, ${branch})`;
    this.#error(expr.at, `found no matching overload for '_?_:_' applied to '${shown}'`);
  }

  #foldResult(
    expr: FoldExpr,
    types: { body: Type; range: Type; firstType: Type; key: Type },
  ): Type {
    const { body, range, firstType, key } = types;
    switch (expr.name) {
      case 'all':
      case 'exists':
      case 'exists_one':
        if (expr.name === 'exists_one') this.#mustBeBool(expr, body, intType);
        else this.#mustAllBeBool([expr.body]);
        return boolType;
      case 'filter':
        this.#mustBeBool(expr, body, listType(firstType));
        return listType(firstType);
      case 'sortBy':
        return range.name === 'list' ? range : listType(dynType);
      case 'map':
      case 'transformList':
        return listType(body);
      case 'transformMap':
        return mapType(key, body);
      case 'transformMapEntry':
        return body.name === 'map' ? body : mapType(dynType, dynType);
    }
  }

  /**
   * Checks `target.hasValue() ? optional.of(body) : optional.none()`, to which cel-go expands the
   * macro. The body's variable is `target.value()`, so issues of the target are reported twice.
   */
  #optionalMap(expr: OptionalMapExpr, scope: Scope | undefined): Type {
    const before = this.#issues.length;
    const parameters = this.#fresh;
    const target = this.#resolved(this.typeOf(expr.target, scope));
    // The target is checked twice, and so are `hasValue`, the list of an empty loop, and `value`.
    this.#skipParameters(this.#fresh - parameters + 3);
    const issues = this.#issues.slice(before);
    const isOptional = target.name === 'optional_type';
    const isValid = isOptional || isDyn(target) || target.name === '!error!';
    const applied = `applied to '${this.#show(target)}.()'`;
    if (!isValid) this.#error(expr.at, `found no matching overload for 'hasValue' ${applied}`);
    if (this.#issues.length + issues.length <= repeatedIssuesMax) appendAll(this.#issues, issues);
    if (!isValid) this.#error(expr.at, `found no matching overload for 'value' ${applied}`);
    // The content of a value of unknown type has the type that the body requires.
    const missing = isValid ? parameterAt(this.#fresh - 1) : errorType;
    const type = isOptional ? (target.args[0] ?? dynType) : missing;
    const body = this.typeOf(expr.body, { name: expr.variable, type, outer: scope });
    if (!expr.flat) {
      this.#skipParameters(3);
      return optionalType(body);
    }
    const none = optionalType(this.#newParameter());
    this.#skipParameters(1);
    const { size } = this.#substitution;
    if (isAssignable(none, body, this.#substitution)) return body;
    this.#substitution.undo(size);
    const types = [isValid ? boolType : errorType, body, none].map((part) => this.#show(part));
    const shown = `(${types.join(', ')})`;
    return this.#error(expr.at, `found no matching overload for '_?_:_' applied to '${shown}'`);
  }

  #bind({ variable: name, value, body }: BindExpr, outer: Scope | undefined): Type {
    const type = this.#resolved(this.typeOf(value, outer));
    return this.typeOf(body, { name, type, outer });
  }
}

/** The type parameter with a number. */
const parameterAt = (number: number): Type => ({
  name: `_var${number}`,
  args: [],
  isParameter: true,
});

/** The names of the type parameters of an overload. */
function parametersOf({ params, result }: Overload): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (type: Type) => {
    if (type.isParameter) names.add(type.name);
    for (const arg of type.args) visit(arg);
  };
  for (const type of [...params, result]) visit(type);
  return names;
}

/** Type parameters of the calls that macros stand for, before and behind their operands. */
const macroParameters: Readonly<
  Partial<Record<FoldName | `${FoldName}/filter`, [number, number]>>
> = {
  map: [1, 1],
  'map/filter': [1, 2],
  filter: [1, 2],
  exists_one: [0, 3],
  transformList: [1, 1],
  'transformList/filter': [1, 2],
  transformMap: [2, 4],
  'transformMap/filter': [2, 5],
  transformMapEntry: [2, 4],
  'transformMapEntry/filter': [2, 5],
};

/** Whether arguments are assignable to parameters; a failure may leave bindings. */
function areAssignable(args: readonly Type[], params: readonly Type[], bindings: Substitution) {
  for (let at = 0; at < args.length; at += 1) {
    if (!isAssignable(itemAt(args, at), itemAt(params, at), bindings)) return false;
  }
  return true;
}

function typeOfLiteral(value: Literal): Type {
  if (value === null) return nullType;
  if (typeof value === 'boolean') return boolType;
  if (typeof value === 'bigint') return intType;
  if (typeof value === 'number') return doubleType;
  if (typeof value === 'string') return stringType;
  return value instanceof Uint8Array ? bytesType : uintType;
}
