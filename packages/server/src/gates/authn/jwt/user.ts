import type { Value } from '@wheelhouse/cel';
import {
  goValue,
  type JsonObject,
  type JsonValue,
  member,
  problemText,
  type UserInfo,
} from '@wheelhouse/machinery';
import {
  claimsValue,
  type Expression,
  ExpressionError,
  textsOf,
  userValue,
} from './expressions.ts';
import { JwtError } from './token.ts';
import type { CheckedAuthenticator, CompiledRule } from './validate.ts';

/**
 * Maps the claims of a verified token to a user and applies the validation rules to both (AUTHN-7,
 * AUTHN-8), in steps. `credentialKey` is the key of the extra value with the token's ID. Throws
 * JwtError, which names claims and expressions but never a value.
 */
export function* userOfClaims(
  claims: JsonObject,
  { configuration, expressions }: CheckedAuthenticator,
  credentialKey: string,
): Generator<void, UserInfo> {
  const { claimMappings, claimValidationRules } = configuration;
  let celClaims: Value | undefined;
  const value = (): Value => {
    celClaims ??= claimsValue(claims);
    return celClaims;
  };
  const claimSet = { claims, value };
  const user: UserInfo = {
    name: yield* usernameOf(claimSet, claimMappings.username, expressions.username),
    groups: yield* groupsOf(claimSet, claimMappings.groups, expressions.groups),
    uid: yield* uidOf(claimSet, claimMappings.uid.claim, expressions.uid),
    extra: yield* extraOf(claimSet, expressions.extra, credentialKey),
  };
  for (const { claim, requiredValue } of claimValidationRules ?? []) {
    if (claim !== '') checkRequired(claims, { claim, requiredValue });
  }
  yield* checkRules(expressions.claimRules, { what: 'claim validation expression', value });
  if (expressions.userRules.length > 0) {
    const subject = userValue(user);
    yield* checkRules(expressions.userRules, {
      what: 'user info validation rule',
      value: () => subject,
    });
  }
  return user;
}

interface ClaimSet {
  readonly claims: JsonObject;
  readonly value: () => Value;
}

function* usernameOf(
  claimSet: ClaimSet,
  mapping: { readonly claim: string; readonly prefix: string | null },
  expression: Expression | undefined,
): Generator<void, string> {
  if (expression !== undefined) {
    const name = yield* evaluate(expression, { ...claimSet, what: 'username claim expression' });
    if (typeof name !== 'string') {
      throw evaluationError(
        'username claim expression',
        'username claim expression must return a string',
      );
    }
    if (name === '') throw new JwtError('oidc: empty username via CEL expression is not allowed');
    return name;
  }
  const { claim, prefix } = mapping;
  const name = textClaim(claimSet.claims, claim, `username claims ${JSON.stringify(claim)}`);
  if (claim === 'email') checkEmailVerified(claimSet.claims);
  const whole = `${prefix ?? ''}${name}`;
  if (whole === '') throw new JwtError('oidc: empty username is not allowed');
  return whole;
}

/** Throws JwtError for an e-mail address that the provider has not verified. */
function checkEmailVerified(claims: JsonObject): void {
  const verified = member(claims, 'email_verified');
  if (verified === undefined || verified === true) return;
  if (verified !== false && verified !== null) {
    throw new JwtError(`oidc: parse 'email_verified' claim: ${cannotRead(verified, 'bool')}`);
  }
  throw new JwtError('oidc: email not verified');
}

function* groupsOf(
  claimSet: ClaimSet,
  mapping: { readonly claim: string; readonly prefix: string | null },
  expression: Expression | undefined,
): Generator<void, readonly string[]> {
  if (expression !== undefined) {
    return yield* evaluateTexts(expression, { ...claimSet, what: 'group claim expression' });
  }
  const groups = mapping.claim === '' ? undefined : member(claimSet.claims, mapping.claim);
  if (groups === undefined || groups === null) return [];
  const list = Array.isArray(groups) && groups.every(isTextOrNull) ? groups : [groups];
  return list.map((group) => {
    if (typeof group === 'string') return `${mapping.prefix ?? ''}${group}`;
    if (group === null) return mapping.prefix ?? '';
    const claim = JSON.stringify(mapping.claim);
    throw new JwtError(`oidc: parse groups claim ${claim}: ${cannotRead(group, 'string')}`);
  });
}

const isTextOrNull = (value: JsonValue) => typeof value === 'string' || value === null;

function* uidOf(
  claimSet: ClaimSet,
  claim: string,
  expression: Expression | undefined,
): Generator<void, string> {
  if (claim !== '') return textClaim(claimSet.claims, claim, `uid claim ${JSON.stringify(claim)}`);
  if (expression === undefined) return '';
  const what = 'uid claim expression';
  const uid = yield* evaluate(expression, { ...claimSet, what });
  if (typeof uid === 'string') return uid;
  throw evaluationError(what, `${what} must return a string`);
}

function* extraOf(
  claimSet: ClaimSet,
  mappings: CheckedAuthenticator['expressions']['extra'],
  credentialKey: string,
): Generator<void, UserInfo['extra']> {
  const extra = new Map<string, readonly string[]>();
  const tokenId = member(claimSet.claims, 'jti');
  if (typeof tokenId === 'string' && tokenId !== '') extra.set(credentialKey, [`JTI=${tokenId}`]);
  for (const { key, value } of mappings) {
    const what = `extra claim expression: ${value.source}`;
    const texts = yield* evaluateTexts(value, { ...claimSet, what });
    if (texts.length > 0) extra.set(key, texts);
  }
  return Object.fromEntries(extra);
}

function checkRequired(
  claims: JsonObject,
  { claim, requiredValue }: { readonly claim: string; readonly requiredValue: string },
): void {
  if (member(claims, claim) === undefined) {
    throw new JwtError(`oidc: required claim ${claim} not present in ID token`);
  }
  if (textClaim(claims, claim, `claim ${claim}`) !== requiredValue) {
    throw new JwtError(`oidc: required claim ${claim} value does not match`);
  }
}

function* checkRules(
  rules: readonly CompiledRule[],
  input: { readonly what: string; readonly value: () => Value },
): Generator<void, void> {
  for (const { rule, message } of rules) {
    if ((yield* evaluate(rule, input)) === true) continue;
    const failed = `validation expression '${rule.source}' failed: ${message}`;
    throw evaluationError(input.what, failed);
  }
}

function* evaluateTexts(
  expression: Expression,
  context: Pick<ClaimSet, 'value'> & { readonly what: string },
): Generator<void, readonly string[]> {
  const value = yield* evaluate(expression, context);
  try {
    return textsOf(value);
  } catch (error) {
    throw inContext(context.what, error);
  }
}

function* evaluate(
  expression: Expression,
  { what, value }: Pick<ClaimSet, 'value'> & { readonly what: string },
): Generator<void, Value> {
  try {
    return yield* expression.evaluate(value());
  } catch (error) {
    throw inContext(what, error);
  }
}

/** The error of an evaluation, with the name of the expression's use. */
function inContext(what: string, error: unknown): unknown {
  return error instanceof ExpressionError ? evaluationError(what, error.message) : error;
}

function evaluationError(what: string, detail: string): JwtError {
  return new JwtError(`oidc: error evaluating ${what}: ${detail}`);
}

/** A claim that must be a string; null is the empty string, as in Go. */
function textClaim(claims: JsonObject, claim: string, what: string): string {
  const value = member(claims, claim);
  if (value === undefined) throw new JwtError(`oidc: parse ${what}: claim not present`);
  if (value === null) return '';
  if (typeof value === 'string') return value;
  throw new JwtError(`oidc: parse ${what}: ${cannotRead(value, 'string')}`);
}

function cannotRead(value: JsonValue, type: string): string {
  return problemText({ code: 'misfit', what: goValue(value), type });
}
