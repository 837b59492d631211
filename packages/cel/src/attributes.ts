import { type Expr, qualifiedName } from './syntax/ast.ts';
import { enumValues } from './syntax/messages.ts';
import { typeNames } from './types/environment.ts';

/**
 * What cel-go charges for attributes at run time: a variable or another value with the members and
 * items that an expression reads from it. Each member costs 1, and so does the whole, unless it is
 * a choice of `?:` or of `optMap`, an index, or the operand of `has`.
 */
export class Attributes {
  readonly #wholes = new WeakMap<Expr, number>();

  /**
   * The cost of an attribute besides its members, which steps of its expression charge. Undefined
   * for other expressions. Takes constant time if the cost of the operand is cached.
   */
  whole(expr: Expr, scope: readonly string[]): number | undefined {
    const cached = this.#wholes.get(expr);
    if (cached !== undefined) return cached;
    const cost = this.#wholeOf(expr, scope);
    if (cost !== undefined) this.#wholes.set(expr, cost);
    return cost;
  }

  #wholeOf(expr: Expr, scope: readonly string[]): number | undefined {
    if (expr.kind === 'ident') return isVariable(expr.name, scope) ? 1 : undefined;
    if (expr.kind === 'select') {
      const name = qualifiedName(expr);
      if (name !== undefined && isVariable(name, scope)) return 1;
      if (name !== undefined && isConstant(name)) return undefined;
      return expr.test ? 0 : (this.whole(expr.operand, scope) ?? 1);
    }
    if (expr.kind === 'optionalMap') return 0;
    if (expr.kind !== 'call' || expr.target !== undefined) return undefined;
    if (expr.name === '_?_:_') return 0;
    const [operand] = expr.args;
    if (!isIndex(expr.name) || operand === undefined) return undefined;
    return this.whole(operand, scope) ?? 1;
  }

  /** The cost of reading a member of an operand: more if that is no attribute by itself. */
  member(operand: Expr, scope: readonly string[]): number {
    return this.whole(operand, scope) === undefined ? 2 : 1;
  }

  /** The cost of testing whether an operand has a member. */
  test(operand: Expr, scope: readonly string[]): number {
    return 1 - (this.whole(operand, scope) ?? 0);
  }

  /** The cost of an index besides those of the operand and of the index, which a call charges. */
  index(args: readonly Expr[], scope: readonly string[]): number {
    const [operand, index] = args;
    if (operand === undefined || index === undefined) return 1;
    return this.member(operand, scope) - (this.whole(index, scope) ?? 0);
  }
}

/** Whether a function reads an item of a list or map. */
export const isIndex = (name: string) => name === '_[_]' || name === '_[?_]';

const plain = (name: string) => name.replace(/^\./, '');

const isVariable = (name: string, scope: readonly string[]) => scope.includes(plain(name));

const isConstant = (name: string) => typeNames.has(plain(name)) || enumValues.has(plain(name));
