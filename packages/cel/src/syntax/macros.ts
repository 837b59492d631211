import { itemAt } from '@wheelhouse/machinery';
import type { CallExpr, Expr, FoldName } from './ast.ts';
import { LexError } from './lexer.ts';

interface FoldForm {
  readonly name: FoldName;
  readonly variables: 1 | 2;
  readonly filtered: boolean;
}

/** Macros by name and number of arguments. */
const folds: ReadonlyMap<string, FoldForm> = new Map([
  ...(['all', 'exists', 'exists_one', 'existsOne'] as const).flatMap((macro) => {
    const name = macro === 'existsOne' ? 'exists_one' : macro;
    return ([1, 2] as const).map((variables): [string, FoldForm] => [
      `${macro}/${variables + 1}`,
      { name, variables, filtered: false },
    ]);
  }),
  ['map/2', { name: 'map', variables: 1, filtered: false }],
  ['map/3', { name: 'map', variables: 1, filtered: true }],
  ['filter/2', { name: 'filter', variables: 1, filtered: false }],
  ['sortBy/2', { name: 'sortBy', variables: 1, filtered: false }],
  ['transformList/3', { name: 'transformList', variables: 2, filtered: false }],
  ['transformList/4', { name: 'transformList', variables: 2, filtered: true }],
  ['transformMap/3', { name: 'transformMap', variables: 2, filtered: false }],
  ['transformMap/4', { name: 'transformMap', variables: 2, filtered: true }],
  ['transformMapEntry/3', { name: 'transformMapEntry', variables: 2, filtered: false }],
  ['transformMapEntry/4', { name: 'transformMapEntry', variables: 2, filtered: true }],
]);

/** Macros that only some environments support. */
export interface MacroOptions {
  /** Whether `cel.bind` is supported; otherwise it is a call of an unknown function. */
  readonly bindings?: 'known';
}

/** Expands a call if it is a macro. Throws `LexError` for misuse. */
export function expandMacro(call: CallExpr, options: MacroOptions): Expr {
  const { target, name, args, at } = call;
  if (target === undefined) return name === 'has' && args.length === 1 ? has(call) : call;
  if (options.bindings === 'known' && isBinding(call)) return binding(call);
  const form = folds.get(`${name}/${args.length}`);
  if (form !== undefined) {
    const named = args.slice(0, form.variables);
    const variables = named.map((arg) => variable(arg, oldMacros[name] ?? notSimple));
    if (variables.length === 2 && variables[0] === variables[1]) {
      throw new LexError(args[1]?.at ?? at, `duplicate variable name: ${variables[0]}`);
    }
    const taken = variables.indexOf(accumulator);
    if (taken >= 0) {
      const why = 'iteration variable overwrites accumulator variable';
      throw new LexError(named[taken]?.at ?? at, why);
    }
    const body = itemAt(args, args.length - 1);
    const filter = form.filtered ? args.at(-2) : undefined;
    return { kind: 'fold', at, name: form.name, range: target, variables, filter, body };
  }
  const [first, body] = args;
  const isPair = first !== undefined && body !== undefined && args.length === 2;
  if ((name === 'optMap' || name === 'optFlatMap') && isPair) {
    const flat = name === 'optFlatMap';
    const why = `${name}() variable name must be a simple identifier`;
    return { kind: 'optionalMap', at, target, variable: variable(first, why), body, flat };
  }
  return call;
}

function isBinding({ target, name, args }: CallExpr): boolean {
  return name === 'bind' && args.length === 3 && target?.kind === 'ident' && target.name === 'cel';
}

function binding({ args, at }: CallExpr): Expr {
  const name = variable(itemAt(args, 0), 'cel.bind() variable names must be simple identifiers');
  return { kind: 'bind', at, variable: name, value: itemAt(args, 1), body: itemAt(args, 2) };
}

function has({ args, at }: CallExpr): Expr {
  const [arg] = args;
  if (arg?.kind !== 'select' || arg.optional) {
    throw new LexError(arg?.at ?? at, 'invalid argument to has() macro');
  }
  return { ...arg, at, test: true };
}

const notSimple = 'argument must be a simple name';
/** Macros with specific error messages. */
const oldMacros: Readonly<Record<string, string | undefined>> = {
  map: 'argument is not an identifier',
  filter: 'argument is not an identifier',
};

/** The accumulator of cel-go's loops, whose name no variable may have. */
const accumulator = '__result__';

function variable(expr: Expr, complaint: string): string {
  if (expr.kind === 'ident') return expr.name;
  throw new LexError(expr.at, complaint);
}
