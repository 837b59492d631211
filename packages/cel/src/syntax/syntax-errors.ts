import { itemAt } from '@wheelhouse/machinery';
import type { Token } from './lexer.ts';

/** What may begin an operand, in the order of upstream's grammar. */
const starts =
  "'[' '{' '(' '.' '-' '!' 'true' 'false' 'null' NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER";
/** All signs by their place in the grammar, so that lists of them are in its order. */
const order = "'[' ']' '{' '}' '(' ')' '.' ',' '-' '!' '?'".split(' ');

/** What may stand besides an operand, by what opened the place and what is before that. */
function besides(opening: Token | undefined, before: Token | undefined): readonly string[] {
  if (opening?.kind !== 'operator') return [];
  const isBehindValue =
    before !== undefined && (before.kind !== 'operator' || /^[)\]}]$/.test(before.text));
  if (opening.text === '(') return isBehindValue ? ["')'"] : [];
  if (opening.text === '[') return isBehindValue ? ["'?'"] : ["']'", "','", "'?'"];
  return opening.text === '{' ? ["'}'", "','", "'?'"] : [];
}

function operands(opening: Token | undefined, before: Token | undefined): string {
  const more = besides(opening, before);
  const signs = order.filter((sign) => more.includes(sign) || starts.split(' ').includes(sign));
  const words = starts.split(' ').filter((word) => !order.includes(word));
  return `{${[...signs, ...words].join(', ')}}`;
}

function beginsOperand({ kind, text }: Token): boolean {
  if (kind === 'operator') return /^[[{(.\-!]$/.test(text);
  return kind === 'literal' || (kind === 'name' && text !== 'in');
}

/** What may follow a bracket that closes. */
function follows({ kind, text }: Token): boolean {
  if (kind === 'end') return true;
  return kind === 'operator' ? !/^[({!]$/.test(text) : kind === 'name' && text === 'in';
}

/**
 * The complaint about a token that does not fit, as upstream's parser words it: it first tries to do
 * without the token, then to think one that closes before it.
 *
 * @param wanted what has to stand there; undefined: an operand
 */
export function syntaxError(
  tokens: readonly Token[],
  { at, wanted }: { readonly at: number; readonly wanted: string | undefined },
): string {
  const token = itemAt(tokens, at);
  const next = tokens[at + 1];
  const shown = `'${token.text}'`;
  let expecting = `'${wanted}'`;
  if (wanted === undefined) expecting = operands(tokens[at - 1], tokens[at - 2]);
  else if (wanted === '<EOF>') expecting = wanted;
  const fits =
    next !== undefined && (wanted === undefined ? beginsOperand(next) : next.text === wanted);
  if (fits) return `Syntax error: extraneous input ${shown} expecting ${expecting}`;
  if (wanted !== undefined && /^[)\]}]$/.test(wanted) && follows(token)) {
    return `Syntax error: missing ${expecting} at ${shown}`;
  }
  return `Syntax error: mismatched input ${shown} expecting ${expecting}`;
}
