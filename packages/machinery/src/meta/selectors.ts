import { contained } from '../base/faults.ts';
import { showValue } from './field-error.ts';
import {
  int64In,
  type LabelOperator,
  type LabelRequirement,
  type LabelSelection,
  selectionOf,
  selectorTermsMax,
} from './label-selector.ts';
import { labelValue, qualifiedName } from './names.ts';
import { badRequest } from './status.ts';
import { aggregateText } from './wording.ts';

/** Maximum length of texts that are cached after their last use. */
const recentTextMax = 1024;
/** Size of a generation of the cache; there are two generations. */
const generationMax = 128;

/**
 * Memoizes `parse`, so that equal texts yield the same value (TRUST-4). Short texts are cached in
 * two generations, so that a selector that many requests repeat is parsed once. Long texts are
 * cached only while their value is referenced: memory grows with the distinct texts in use, not
 * with the requests that carry them. Failures are not cached.
 */
export function sharedParse<Value extends object>(
  parse: (text: string) => Value,
): (text: string) => Value {
  let current = new Map<string, Value>();
  let previous = new Map<string, Value>();
  const values = new Map<string, WeakRef<Value>>();
  const removeCollected = (text: string): void => {
    if (values.get(text)?.deref() === undefined) values.delete(text);
  };
  const registry = new FinalizationRegistry(contained({ where: 'memory' }, removeCollected));
  const parseShort = (text: string): Value => {
    const recent = current.get(text);
    if (recent !== undefined) return recent;
    const value = previous.get(text) ?? parse(text);
    if (current.size >= generationMax) {
      previous = current;
      current = new Map();
    }
    current.set(text, value);
    return value;
  };
  const parseLong = (text: string): Value => {
    const cachedValue = values.get(text)?.deref();
    if (cachedValue !== undefined) return cachedValue;
    const value = parse(text);
    values.set(text, new WeakRef(value));
    registry.register(value, text);
    return value;
  };
  return (text) => (text.length > recentTextMax ? parseLong(text) : parseShort(text));
}

/*
 * The selectors in a query: `labelSelector` and `fieldSelector` (API-13).
 *
 *     parseLabelSelector('a in (x, y),!b').matches({ a: 'x' })     true
 *     parseFieldSelector('metadata.name=web,type!=Opaque')         [{ label, operator, value }, …]
 *
 * Both throw a 400 for a malformed text. The caller checks which field labels a kind supports.
 */

/** One condition of a field selector: the field equals the value (`=`, `==`) or does not (`!=`). */
export interface FieldRequirement {
  /** As the user wrote it: `metadata.name`, `spec.nodeName`. */
  readonly label: string;
  readonly operator: '=' | '!=';
  /** Unescaped. */
  readonly value: string;
}

/** Maximum length of the text of one selector, in characters. */
const selectorLengthMax = 32 * 1024;

/**
 * Parses a `labelSelector`; an empty text selects everything. Equal texts yield the same object.
 * Throws a 400, also above `selectorTermsMax` or `selectorLengthMax`.
 */
export const parseLabelSelector: (text: string) => LabelSelection = sharedParse((text) => {
  checkLength(text);
  const requirements = new LabelParser(scan(text)).parse();
  requirements.sort((left, right) => byteOrder(left.key, right.key));
  return selectionOf(requirements);
});

function checkLength(text: string): void {
  if (text.length <= selectorLengthMax) return;
  throw badRequest(`invalid selector: more than ${selectorLengthMax} characters`);
}

function tooManyTerms(): Error {
  return badRequest(`invalid selector: more than ${selectorTermsMax} terms and values`);
}

function byteOrder(left: string, right: string): number {
  return left < right ? -1 : Number(left > right);
}

const symbols = ['==', '!=', '=', '!', ',', '(', ')', '>', '<'] as const;
type Kind = (typeof symbols)[number] | 'in' | 'notin' | 'identifier' | 'end';
interface Token {
  readonly kind: Kind;
  readonly text: string;
}

const blank = /[ \t\r\n]*/y;
const word = /[^ \t\r\n=!(),<>\0]+/y;

function scan(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    blank.lastIndex = at;
    blank.exec(text);
    at = blank.lastIndex;
    const symbol = symbols.find((candidate) => text.startsWith(candidate, at));
    word.lastIndex = at;
    const token = symbol ?? word.exec(text)?.[0];
    if (token === undefined) break;
    const keyword = token === 'in' || token === 'notin' ? token : 'identifier';
    tokens.push({ kind: symbol ?? keyword, text: token });
    at += token.length;
  }
  return [...tokens, { kind: 'end', text: '' }];
}

const binaryOperators: Readonly<Partial<Record<Kind, LabelOperator>>> = {
  in: 'in',
  notin: 'notin',
  '=': '=',
  '==': '==',
  '!=': '!=',
  '>': 'gt',
  '<': 'lt',
};
const endToken: Token = { kind: 'end', text: '' };

/** Returns the error of one requirement. */
const requirementError = (why: string) => badRequest(`unable to parse requirement: ${why}`);

/** A recursive-descent parser that reports the same first error as kube-apiserver's. */
class LabelParser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #terms = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    if (this.#peek().kind === 'end') return requirements;
    const start = this.#peek();
    if (start.kind !== 'identifier' && start.kind !== '!') {
      throw badRequest(`found '${start.text}', expected: !, identifier, or 'end of string'`);
    }
    for (;;) {
      this.#countTerm();
      requirements.push(this.#requirement());
      const token = this.#take();
      if (token.kind === 'end') return requirements;
      if (token.kind !== ',') {
        throw badRequest(`found '${token.text}', expected: ',' or 'end of string'`);
      }
      const next = this.#peek();
      if (next.kind !== 'identifier' && next.kind !== '!') {
        throw badRequest(`found '${next.text}', expected: identifier after ','`);
      }
    }
  }

  /** Returns the next token as a value or key, where `in` and `notin` are plain words. */
  #peek(): Token {
    const token = this.#tokens[this.#at] ?? endToken;
    return token.kind === 'in' || token.kind === 'notin'
      ? { kind: 'identifier', text: token.text }
      : token;
  }

  #take(): Token {
    const token = this.#peek();
    this.#at += 1;
    return token;
  }

  #countTerm(): void {
    this.#terms += 1;
    if (this.#terms > selectorTermsMax) throw tooManyTerms();
  }

  #requirement(): LabelRequirement {
    let token = this.#take();
    const isAbsence = token.kind === '!';
    if (isAbsence) token = this.#take();
    if (token.kind !== 'identifier') {
      throw requirementError(`found '${token.text}', expected: identifier`);
    }
    const key = token.text;
    const messages = qualifiedName(key);
    if (messages.length > 0) throw requirementError(invalidText('<nil>', key, messages));
    if (isAbsence) return { key, operator: '!', values: [] };
    const next = this.#peek().kind;
    if (next === 'end' || next === ',') return { key, operator: 'exists', values: [] };
    const operator = this.#operator();
    const isSet = operator === 'in' || operator === 'notin';
    const values = isSet ? this.#values() : [this.#exactValue()];
    return validate({ key, operator, values });
  }

  #operator(): LabelOperator {
    const token = this.#tokens[this.#at] ?? endToken;
    this.#at += 1;
    const operator = binaryOperators[token.kind];
    if (operator === undefined) {
      const operators = Object.values(binaryOperators).join(', ');
      throw requirementError(`found '${token.text}', expected: ${operators}`);
    }
    return operator;
  }

  #exactValue(): string {
    const next = this.#peek().kind;
    if (next === 'end' || next === ',') return '';
    const token = this.#take();
    if (token.kind === 'identifier') return token.text;
    throw requirementError(`found '${token.text}', expected: identifier`);
  }

  #values(): string[] {
    const open = this.#take();
    if (open.kind !== '(') throw requirementError(`found '${open.text}' expected: '('`);
    const token = this.#peek();
    if (token.kind === ')') {
      this.#at += 1;
      return [''];
    }
    if (token.kind !== 'identifier' && token.kind !== ',') {
      throw requirementError(`found '${token.text}', expected: ',', ')' or identifier`);
    }
    const values = this.#valueList();
    this.#at += 1;
    return [...values].sort(byteOrder);
  }

  /**
   * Parses values up to the closing parenthesis; nothing between two commas is the empty value. As in
   * kube-apiserver, a second comma belongs to the first, so that a third value must follow (`a,,`).
   */
  #valueList(): Set<string> {
    const values = new Set<string>();
    for (;;) {
      const token = this.#take();
      const next = this.#peek();
      if (token.kind === 'identifier') {
        this.#countTerm();
        values.add(token.text);
        if (next.kind === ')') return values;
        if (next.kind !== ',') throw requirementError(`found '${next.text}', expected: ',' or ')'`);
      } else if (token.kind === ',') {
        if (values.size === 0 || next.kind === ')' || next.kind === ',') values.add('');
        if (next.kind === ')') return values;
        if (next.kind === ',') this.#at += 1;
      } else {
        throw requirementError(`found '${token.text}', expected: ',', or identifier`);
      }
    }
  }
}

const invalidText = (path: string, value: string, messages: readonly string[]) =>
  `${path}: Invalid value: ${showValue(value)}: ${messages.join('; ')}`;

function validate(requirement: LabelRequirement): LabelRequirement {
  const { key, operator, values } = requirement;
  const messages: string[] = [];
  if (operator === 'gt' || operator === 'lt') {
    const why = "for 'Gt', 'Lt' operators, the value must be an integer";
    values.forEach((value, index) => {
      if (int64In(value) !== undefined) return;
      messages.push(invalidText(`values[${index}]`, value, [why]));
    });
  }
  values.forEach((value, index) => {
    const labelMessages = labelValue(value);
    if (labelMessages.length > 0)
      messages.push(invalidText(`values[${index}][${key}]`, value, labelMessages));
  });
  if (messages.length === 0) return requirement;
  throw requirementError(aggregateText(messages));
}

/**
 * Parses a `fieldSelector`: comma-separated terms of the form `label=value`, `label==value`, or
 * `label!=value`. `\\`, `\,`, and `\=` in a value escape these characters. Empty terms are ignored.
 * Equal texts yield the same list. Throws a 400, also above `selectorTermsMax` terms or
 * `selectorLengthMax` characters.
 */
export const parseFieldSelector: (text: string) => readonly FieldRequirement[] = sharedParse(
  (text) => {
    checkLength(text);
    const terms = splitTerms(text).filter((term) => term !== '');
    if (terms.length > selectorTermsMax) throw tooManyTerms();
    const requirements = terms.sort(byteOrder).map((term) => fieldRequirement(term, text));
    // A term without field and value has no effect.
    return requirements.filter(({ label, value }) => label !== '' || value !== '');
  },
);

function fieldRequirement(term: string, selector: string): FieldRequirement {
  const match = /!=|==|=/.exec(term);
  if (match === null) {
    throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
  }
  const [operator] = match;
  const value = unescapeValue(term.slice(match.index + operator.length));
  return { label: term.slice(0, match.index), operator: operator === '!=' ? '!=' : '=', value };
}

function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...terms, text.slice(start)];
}

function unescapeValue(text: string): string {
  if (!/[\\,=]/.test(text)) return text;
  return text.replace(/\\([\s\S]?)|[,=]/gu, (matched: string, escaped: string | undefined) => {
    if (escaped === undefined) {
      const code = matched.codePointAt(0);
      throw badRequest(`invalid field selector: unescaped character in value: ${code}`);
    }
    if (escaped === '\\' || escaped === ',' || escaped === '=') return escaped;
    throw badRequest(`invalid field selector: invalid escape sequence: ${matched}`);
  });
}
