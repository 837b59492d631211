import {
  CelCompileError,
  CelError,
  compileSteps,
  dynType,
  jsonToValue,
  List,
  listType,
  mapType,
  type Program,
  standardFunctions,
  stringType,
  type Type,
  type Value,
} from '@wheelhouse/cel';
import type { JsonObject, UserInfo } from '@wheelhouse/machinery';

/** The variables of an expression: the claims of a token, or the user made from them. */
type Subject = 'claims' | 'user';

/** A compiled expression. */
export interface Expression {
  readonly source: string;
  /** Evaluates the expression in steps (TRUST-2). Throws ExpressionError. */
  evaluate(value: Value): Generator<void, Value>;
}

/**
 * An expression that fails for a token. The message may be logged, so it contains the expression,
 * which is configuration, but no part of the token.
 */
export class ExpressionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ExpressionError';
  }
}

const textList = listType(stringType);
const subjectTypes: Readonly<Record<Subject, Type>> = {
  claims: mapType(stringType, dynType),
  user: {
    name: 'kubernetes.UserInfo',
    args: [],
    fields: new Map([
      ['username', stringType],
      ['uid', stringType],
      ['groups', textList],
      ['extra', mapType(stringType, textList)],
    ]),
  },
};

/** Cost limit of one evaluation, as for the rules of custom kinds. */
const costMax = 1_000_000;

/** Compiles an expression in steps, or returns the error in kube-apiserver's wording. */
export function* compileExpression(
  source: string,
  expected: { readonly subject: Subject; readonly result: 'bool' | 'any' },
): Generator<void, Expression | { readonly problem: string }> {
  const { subject } = expected;
  try {
    const compiled = yield* compileSteps(source, {
      functions: standardFunctions(),
      variables: new Map([[subject, subjectTypes[subject]]]),
    });
    if (expected.result === 'bool' && compiled.type.name !== 'bool') {
      return { problem: 'must evaluate to bool' };
    }
    return expressionOf(source, { subject, program: yield* compiled.programSteps() });
  } catch (error) {
    if (error instanceof CelCompileError)
      return { problem: `compilation failed: ${error.message}` };
    if (error instanceof CelError) {
      return { problem: `program instantiation failed: ${error.message}` };
    }
    throw error;
  }
}

function expressionOf(
  source: string,
  compiled: { readonly subject: Subject; readonly program: Program },
): Expression {
  return {
    source,
    *evaluate(value) {
      const { program, subject } = compiled;
      const measured = yield* program.steps(new Map([[subject, value]]), costMax);
      if (measured.error === undefined) return measured.value;
      const failed = `expression '${source}' resulted in error`;
      throw new ExpressionError(`${failed}${safeReason(measured.error.message, source)}`);
    },
  };
}

/** The reason of a failure, unless it might contain the value of a claim. */
function safeReason(reason: string, source: string): string {
  const missing = /^no such key: (\w+)$/.exec(reason)?.[1];
  return missing !== undefined && source.includes(missing) ? `: ${reason}` : '';
}

/** Claims as CEL values. */
export function claimsValue(claims: JsonObject): Value {
  return jsonToValue(claims, {});
}

/** A user as a CEL value. */
export function userValue(user: UserInfo): Value {
  const extra = Object.fromEntries(
    Object.entries(user.extra).map(([key, values]) => [key, [...values]]),
  );
  const json = { username: user.name, uid: user.uid, groups: [...user.groups], extra };
  return jsonToValue(json, {});
}

/**
 * The non-empty strings that a mapping returns: a string, a list of strings, or null. Throws
 * ExpressionError for other types.
 */
export function textsOf(value: Value): readonly string[] {
  if (value === null || value === '') return [];
  if (typeof value === 'string') return [value];
  const wrong = () => new ExpressionError('expression must return a string or a list of strings');
  if (!(value instanceof List)) throw wrong();
  return Array.from(value.items).flatMap((item) => {
    if (typeof item !== 'string') throw wrong();
    return item === '' ? [] : [item];
  });
}
