import { itemAt } from '@wheelhouse/machinery';
import type { Issue } from './issues.ts';
import {
  type BindExpr,
  type CallExpr,
  type Expr,
  type FoldExpr,
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
  type Substitution,
  showType,
  stringType,
  substituted,
  type Type,
  typeType,
  uintType,
} from './types/types.ts';

export interface Checked {
  /** Type of the result; dyn if unknown. */
  readonly type: Type;
  readonly issues: readonly Issue[];
  /** Used variables of the environment. */
  readonly used: ReadonlySet<string>;
  /** Type of every subexpression; dyn if unknown. */
  readonly types: ReadonlyMap<Expr, Type>;
  /** Candidate overloads of each call. */
  readonly overloads: ReadonlyMap<CallExpr, readonly Overload[]>;
}

/** Determines the type of every subexpression and all type errors. */
export function check(expr: Expr, environment: Environment): Checked {
  const checker = new Checker(environment);
  const type = checker.finished(checker.typeOf(expr, undefined));
  const { issues, used, overloads } = checker;
  return { type, issues, used, types: checker.finishedTypes(), overloads };
}

/** Variables of macros, innermost first. */
interface Scope {
  readonly name: string;
  readonly type: Type;
  readonly outer: Scope | undefined;
}

/** Holds the bindings of type parameters and the issues. */
class Checker {
  readonly issues: Issue[] = [];
  readonly used = new Set<string>();
  readonly overloads = new Map<CallExpr, readonly Overload[]>();
  readonly #types = new Map<Expr, Type>();
  readonly #environment: Environment;
  readonly #known: Substitution = new Map();
  #fresh = 0;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  finished(type: Type): Type {
    return substituted(type, this.#known, 'dyn');
  }

  finishedTypes(): ReadonlyMap<Expr, Type> {
    return new Map([...this.#types].map(([expr, type]) => [expr, this.finished(type)]));
  }

  typeOf(expr: Expr, scope: Scope | undefined): Type {
    const type = this.#find(expr, scope);
    this.#types.set(expr, type);
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
    this.issues.push({ at, message });
    return errorType;
  }

  #undeclared(at: number, name: string): Type {
    return this.#error(at, `undeclared reference to '${name}' (in container '')`);
  }

  #show(type: Type): string {
    return showType(this.finished(type));
  }

  #newParameter(): Type {
    this.#fresh += 1;
    return { name: `_${this.#fresh}`, args: [], isParameter: true };
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
    if ((isOptional || expr.optional) && field.name !== '!error!') return optionalType(field);
    return field;
  }

  #resolved(type: Type): Type {
    return substituted(type, this.#known, 'keep');
  }

  #field(target: Type, { at, field }: SelectExpr): Type {
    if (target.fields !== undefined) {
      return target.fields.get(field) ?? this.#error(at, `undefined field '${field}'`);
    }
    if (target.name === 'map') return target.args[1] ?? dynType;
    if (isDyn(target) || target.isParameter) return dynType;
    if (target.name === '!error!') return errorType;
    const shown = this.#show(target);
    // Objects of these types have functions but no fields.
    if (target.name.startsWith('kubernetes.')) {
      return this.#error(at, `unexpected failed resolution of '${shown}'`);
    }
    return this.#error(at, `type '${shown}' does not support field selection`);
  }

  #call(expr: CallExpr, scope: Scope | undefined): Type {
    const { functions } = this.#environment;
    const namespaced = namespacedName(expr, functions);
    const name = namespaced ?? expr.name;
    const target = namespaced === undefined ? expr.target : undefined;
    const args = expr.args.map((arg) => this.typeOf(arg, scope));
    const receiver = target === undefined ? undefined : this.typeOf(target, scope);
    const overloads = functions.get(name);
    if (overloads === undefined) return this.#undeclared(expr.at, name);
    if (name === '_&&_' || name === '_||_') this.#mustAllBeBool(expr.args);
    const argumentTypes = receiver === undefined ? args : [receiver, ...args];
    const found = this.#overload(expr, overloads, argumentTypes);
    if (found !== undefined) return found;
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
      if (overload.isMember !== isMember || overload.params.length !== argumentTypes.length)
        continue;
      const { params, result: type } = this.#instance(overload);
      const trial = new Map(this.#known);
      if (!argumentTypes.every((arg, at) => isAssignable(arg, itemAt(params, at), trial))) continue;
      matching.push(overload);
      if (result === undefined) {
        for (const [name, bound] of trial) this.#known.set(name, bound);
        result = this.#resolved(type);
      } else if (this.#show(result) !== showType(substituted(type, trial, 'dyn'))) {
        result = dynType;
      }
    }
    return result;
  }

  #instance(overload: Overload): { params: readonly Type[]; result: Type } {
    const fresh: Substitution = new Map();
    const renew = (type: Type): Type => {
      if (type.isParameter) {
        const parameter = fresh.get(type.name) ?? this.#newParameter();
        fresh.set(type.name, parameter);
        return parameter;
      }
      return type.args.length === 0 ? type : { ...type, args: type.args.map(renew) };
    };
    return { params: overload.params.map(renew), result: renew(overload.result) };
  }

  #list(expr: Extract<Expr, { kind: 'list' }>, scope: Scope | undefined): Type {
    let item: Type | undefined;
    for (const { value, optional } of expr.items) {
      item = this.#joined(item, this.#element(value, { optional, scope }));
    }
    return listType(item ?? this.#newParameter());
  }

  /** An element after a question mark is optional. */
  #element(expr: Expr, at: { optional: boolean; scope: Scope | undefined }): Type {
    const type = this.typeOf(expr, at.scope);
    if (!at.optional) return type;
    const inner = this.#newParameter();
    if (isAssignable(type, optionalType(inner), this.#known)) return this.#resolved(inner);
    return this.#mismatch(expr.at, optionalType(inner), type);
  }

  #mismatch(at: number, wanted: Type, found: Type): Type {
    return this.#error(
      at,
      `expected type '${this.#show(wanted)}' but found '${this.#show(found)}'`,
    );
  }

  /** The type of the elements so far; whether all have the same one is checked later. */
  #joined(before: Type | undefined, type: Type): Type {
    if (before === undefined) return type;
    if (isAssignable(before, type, this.#known) || isAssignable(type, before, this.#known)) {
      return moreGeneral(this.#resolved(before), this.#resolved(type));
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
      const wanted = struct.field(field.name);
      if (wanted === undefined) this.#error(field.at, `undefined field '${field.name}'`);
      else if (!isAssignable(type, wanted, this.#known)) {
        const shown = `expected type of field '${field.name}' is '${this.#show(wanted)}'`;
        this.#error(field.at, `${shown} but provided type is '${this.#show(type)}'`);
      }
    }
    return struct.type;
  }

  #map(expr: MapExpr, scope: Scope | undefined): Type {
    let key: Type | undefined;
    let value: Type | undefined;
    for (const entry of expr.entries) {
      key = this.#joined(key, this.typeOf(entry.key, scope));
      const type = this.#element(entry.value, { optional: entry.optional, scope });
      value = this.#joined(value, type);
    }
    return mapType(key ?? this.#newParameter(), value ?? this.#newParameter());
  }

  #fold(expr: FoldExpr, scope: Scope | undefined): Type {
    const range = this.#resolved(this.typeOf(expr.range, scope));
    const [key, value] = this.#elements(range, expr);
    const [first = '', second] = expr.variables;
    const isList = range.name === 'list';
    const one = second === undefined && isList ? value : key;
    let inner: Scope = { name: first, type: one, outer: scope };
    if (second !== undefined) inner = { name: second, type: value, outer: inner };
    if (expr.filter !== undefined) this.#mustBeBool(expr, this.typeOf(expr.filter, inner));
    const body = this.typeOf(expr.body, inner);
    return this.#foldResult(expr, { body, range, one, key });
  }

  #elements(range: Type, expr: FoldExpr): [Type, Type] {
    if (range.name === 'list') return [intType, range.args[0] ?? dynType];
    if (range.name === 'map') return [range.args[0] ?? dynType, range.args[1] ?? dynType];
    if (isDyn(range) || range.name === '!error!') return [dynType, dynType];
    if (range.isParameter) return [dynType, dynType];
    const shown = this.#show(range);
    const why = `expression of type '${shown}' cannot be range of a comprehension`;
    this.#error(expr.range.at, `${why} (must be list, map, or dynamic)`);
    return [errorType, errorType];
  }

  /** Each operand that is not a bool is reported separately. */
  #mustAllBeBool(exprs: readonly Expr[]): void {
    for (const expr of exprs) {
      const type = this.#types.get(expr) ?? dynType;
      if (!isAssignable(type, boolType, this.#known)) this.#mismatch(expr.at, boolType, type);
    }
  }

  #mustBeBool(expr: FoldExpr, type: Type): void {
    if (isAssignable(type, boolType, this.#known)) return;
    const shown = `${this.#show(type)}, dyn, dyn`;
    this.#error(expr.at, `found no matching overload for '_?_:_' applied to '(${shown})'`);
  }

  #foldResult(expr: FoldExpr, types: { body: Type; range: Type; one: Type; key: Type }): Type {
    const { body, range, one, key } = types;
    switch (expr.name) {
      case 'all':
      case 'exists':
      case 'exists_one':
        if (expr.name === 'exists_one') this.#mustBeBool(expr, body);
        else this.#mustAllBeBool([expr.body]);
        return boolType;
      case 'filter':
        this.#mustBeBool(expr, body);
        return listType(one);
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

  #optionalMap(expr: OptionalMapExpr, scope: Scope | undefined): Type {
    const target = this.#resolved(this.typeOf(expr.target, scope));
    const isOptional = target.name === 'optional_type';
    if (!isOptional && !isDyn(target) && target.name !== '!error!') {
      const applied = `${this.#show(target)}.()`;
      const message = `found no matching overload for 'hasValue' applied to '${applied}'`;
      return this.#error(expr.at, message);
    }
    const type = isOptional ? (target.args[0] ?? dynType) : dynType;
    const body = this.typeOf(expr.body, { name: expr.variable, type, outer: scope });
    return expr.flat ? body : optionalType(body);
  }

  #bind({ variable: name, value, body }: BindExpr, outer: Scope | undefined): Type {
    const type = this.#resolved(this.typeOf(value, outer));
    return this.typeOf(body, { name, type, outer });
  }
}

function typeOfLiteral(value: Literal): Type {
  if (value === null) return nullType;
  if (typeof value === 'boolean') return boolType;
  if (typeof value === 'bigint') return intType;
  if (typeof value === 'number') return doubleType;
  if (typeof value === 'string') return stringType;
  return value instanceof Uint8Array ? bytesType : uintType;
}
