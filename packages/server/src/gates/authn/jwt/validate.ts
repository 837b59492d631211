import { X509Certificate } from 'node:crypto';
import { selects } from '@wheelhouse/cel';
import { pemBlocks } from '@wheelhouse/codec';
import {
  appendAll,
  capitalize,
  type Dialect,
  domainPrefixedPath,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  parseGoUrl,
  required,
  tooMany,
  withoutTrailingSlashes,
} from '@wheelhouse/machinery';
import { childPath, indexPath } from '@wheelhouse/schema';
import type {
  AnonymousConfiguration,
  AuthenticationConfiguration,
  JwtAuthenticatorConfiguration,
  PrefixedClaimOrExpression,
} from './configuration.ts';
import { compileExpression, type Expression } from './expressions.ts';

/** Errors in a URL that must be https, without user info, query, or fragment (AUTHN-8). */
function urlErrors(field: string, text: string): readonly FieldError[] {
  const parts = parseGoUrl(text);
  if (typeof parts === 'string') return [invalid(field, text, parts)];
  const details: string[] = [];
  if (parts.scheme !== 'https') details.push('URL scheme must be https');
  if (parts.user !== undefined) details.push('URL must not contain a username or password');
  if (parts.query !== '') details.push('URL must not contain a query');
  if (parts.fragment !== '') details.push('URL must not contain a fragment');
  return details.map((detail) => invalid(field, text, detail));
}

/** The compiled expressions of an authenticator. */
interface CompiledExpressions {
  readonly username: Expression | undefined;
  readonly groups: Expression | undefined;
  readonly uid: Expression | undefined;
  readonly extra: readonly { readonly key: string; readonly value: Expression }[];
  readonly claimRules: readonly CompiledRule[];
  readonly userRules: readonly CompiledRule[];
}

/** A validation rule with its error message. */
export interface CompiledRule {
  readonly rule: Expression;
  readonly message: string;
}

/** Settings other than the file that validation depends on. */
interface ValidationOptions {
  /** Issuers of the server's own tokens, which the file must not use. */
  readonly disallowedIssuers: readonly string[];
  /** The dialect, whose domains are reserved in keys of extra values. */
  readonly dialect: Dialect;
  /** Gate AnonymousAuthConfigurableEndpoints. */
  readonly anonymousConfigurable: boolean;
}

/** An authenticator with a valid configuration. */
export interface CheckedAuthenticator {
  readonly configuration: JwtAuthenticatorConfiguration;
  readonly expressions: CompiledExpressions;
}

const authenticatorsMax = 64;

/**
 * Validates a configuration with kube-apiserver's rules, wording, and order (AUTHN-8), and compiles
 * its expressions, in steps. The authenticators are usable only if there are no errors.
 */
export function* validateAuthentication(
  { jwt, anonymous }: AuthenticationConfiguration,
  options: ValidationOptions,
): Generator<
  void,
  { readonly errors: readonly FieldError[]; readonly authenticators: CheckedAuthenticator[] }
> {
  const all = jwt ?? [];
  if (all.length > authenticatorsMax) {
    return { errors: [tooMany('jwt', all.length, authenticatorsMax)], authenticators: [] };
  }
  const errors: FieldError[] = [];
  const urls = new UniqueValues(errors);
  const discoveryUrls = new UniqueValues(errors);
  const authenticators: CheckedAuthenticator[] = [];
  for (const [index, configuration] of all.entries()) {
    const at = indexPath('jwt', index);
    const { issuer } = configuration;
    const validation = new AuthenticatorValidation(errors, options);
    const expressions = yield* validation.validate(configuration, at);
    urls.add(`${at}.issuer.url`, issuer.url);
    const discoveryUrl = issuer.discoveryURL ?? '';
    if (discoveryUrl !== '') discoveryUrls.add(`${at}.issuer.discoveryURL`, discoveryUrl);
    authenticators.push({ configuration, expressions });
  }
  appendAll(errors, anonymousErrors(anonymous, options));
  return { errors, authenticators };
}

function anonymousErrors(
  anonymous: AnonymousConfiguration | null,
  { anonymousConfigurable }: ValidationOptions,
): FieldError[] {
  if (anonymous === null) return [];
  const errors: FieldError[] = [];
  if (!anonymousConfigurable) {
    const gate = 'AnonymousAuthConfigurableEndpoints feature gate is disabled';
    errors.push(forbiddenField('anonymous', `anonymous is not supported when ${gate}`));
  }
  const conditions = anonymous.conditions ?? [];
  if (!anonymous.enabled && conditions.length > 0) {
    const shown = conditions.map(({ path }) => ({ path }));
    const detail = 'enabled should be set to true when conditions are defined';
    errors.push(invalid('anonymous.conditions', shown, detail));
  }
  return errors;
}

/** Detects duplicate values. */
class UniqueValues {
  readonly #seen = new Set<string>();
  readonly #errors: FieldError[];

  constructor(errors: FieldError[]) {
    this.#errors = errors;
  }

  /** @returns whether the value is new */
  add(field: string, value: string): boolean {
    if (this.#seen.has(value)) {
      this.#errors.push(duplicate(field, value));
      return false;
    }
    this.#seen.add(value);
    return true;
  }
}

/** Collects the errors of one authenticator, and the e-mail claims that its expressions use. */
class AuthenticatorValidation {
  readonly #errors: FieldError[];
  readonly #options: ValidationOptions;
  #usesEmailVerified = false;

  constructor(errors: FieldError[], options: ValidationOptions) {
    this.#errors = errors;
    this.#options = options;
  }

  *validate(
    configuration: JwtAuthenticatorConfiguration,
    at: string,
  ): Generator<void, CompiledExpressions> {
    this.#issuer(configuration.issuer, `${at}.issuer`);
    const claimRules = yield* this.#claimRules(configuration, `${at}.claimValidationRules`);
    const mappings = yield* this.#mappings(configuration.claimMappings, `${at}.claimMappings`);
    const userRules = yield* this.#userRules(configuration, `${at}.userValidationRules`);
    return { ...mappings, claimRules, userRules };
  }

  #issuer(issuer: JwtAuthenticatorConfiguration['issuer'], at: string): void {
    const { url, discoveryURL, certificateAuthority } = issuer;
    if (url === '') this.#errors.push(required(`${at}.url`, 'URL is required'));
    else {
      appendAll(this.#errors, this.#disallowed(`${at}.url`, url));
      appendAll(this.#errors, urlErrors(`${at}.url`, url));
    }
    if (discoveryURL !== null && discoveryURL !== '') {
      const field = `${at}.discoveryURL`;
      if (url !== '' && withoutTrailingSlashes(url) === withoutTrailingSlashes(discoveryURL)) {
        this.#errors.push(invalid(field, discoveryURL, 'discoveryURL must be different from URL'));
      }
      appendAll(this.#errors, urlErrors(field, discoveryURL));
    }
    this.#audiences(issuer, at);
    const problem = certificateAuthority === '' ? undefined : bundleProblem(certificateAuthority);
    if (problem !== undefined) {
      this.#errors.push(invalid(`${at}.certificateAuthority`, '<omitted>', problem));
    }
  }

  #disallowed(field: string, url: string): readonly FieldError[] {
    const { disallowedIssuers } = this.#options;
    if (!disallowedIssuers.includes(url)) return [];
    const list = [...new Set(disallowedIssuers)].sort().join(' ');
    const detail = `URL must not overlap with disallowed issuers: [${list}]`;
    return [invalid(field, url, detail)];
  }

  #audiences(issuer: JwtAuthenticatorConfiguration['issuer'], at: string): void {
    const audiences = issuer.audiences ?? [];
    const field = `${at}.audiences`;
    if (audiences.length === 0) {
      this.#errors.push(required(field, `at least one ${field} is required`));
      return;
    }
    const seen = new UniqueValues(this.#errors);
    audiences.forEach((audience, index) => {
      const place = indexPath(field, index);
      if (audience === '') this.#errors.push(required(place, "audience can't be empty"));
      seen.add(place, audience);
    });
    const policy = issuer.audienceMatchPolicy;
    const single = audiences.length === 1;
    if (policy === 'MatchAny' || (single && policy === '')) return;
    const detail = single
      ? 'audienceMatchPolicy must be empty or MatchAny for single audience'
      : 'audienceMatchPolicy must be MatchAny for multiple audiences';
    this.#errors.push(invalid(`${at}.audienceMatchPolicy`, policy, detail));
  }

  *#claimRules(
    { claimValidationRules }: JwtAuthenticatorConfiguration,
    at: string,
  ): Generator<void, readonly CompiledRule[]> {
    const claims = new UniqueValues(this.#errors);
    const expressions = new UniqueValues(this.#errors);
    const compiled: CompiledRule[] = [];
    for (const [index, rule] of (claimValidationRules ?? []).entries()) {
      const place = indexPath(at, index);
      const { claim, expression, message, requiredValue } = rule;
      if (claim !== '' && expression !== '') {
        this.#errors.push(invalid(place, claim, "claim and expression can't both be set"));
      } else if (claim === '' && expression === '') {
        this.#errors.push(required(place, 'claim or expression is required'));
      } else if (claim !== '') {
        if (message !== '') {
          const detail = "message can't be set when claim is set";
          this.#errors.push(invalid(`${place}.message`, message, detail));
        }
        claims.add(`${place}.claim`, claim);
      } else {
        if (requiredValue !== '') {
          const detail = "requiredValue can't be set when expression is set";
          this.#errors.push(invalid(`${place}.requiredValue`, requiredValue, detail));
        }
        const field = `${place}.expression`;
        if (!expressions.add(field, expression)) continue;
        const rule = yield* this.#compile(field, expression, { subject: 'claims', result: 'bool' });
        if (rule !== undefined) compiled.push({ rule, message });
        this.#recordEmailVerified(rule);
      }
    }
    return compiled;
  }

  *#mappings(
    mappings: JwtAuthenticatorConfiguration['claimMappings'],
    at: string,
  ): Generator<void, Omit<CompiledExpressions, 'claimRules' | 'userRules'>> {
    const username = yield* this.#prefixed(mappings.username, `${at}.username`);
    if (mappings.username.claim === '' && mappings.username.expression === '') {
      this.#errors.push(required(`${at}.username`, 'claim or expression is required'));
    }
    this.#recordEmailVerified(username);
    const groups = yield* this.#prefixed(mappings.groups, `${at}.groups`);
    const uid = yield* this.#uid(mappings.uid, `${at}.uid`);
    const extra = yield* this.#extra(mappings.extra ?? [], `${at}.extra`);
    const email = { variable: 'claims', field: 'email' };
    if (username !== undefined && selects(username.source, email) && !this.#usesEmailVerified) {
      this.#errors.push(invalid(`${at}.username.expression`, username.source, emailVerifiedDetail));
    }
    return { username, groups, uid, extra };
  }

  *#prefixed(
    mapping: PrefixedClaimOrExpression,
    at: string,
  ): Generator<void, Expression | undefined> {
    const { claim, expression, prefix } = mapping;
    if (expression !== '' && claim !== '') {
      this.#errors.push(invalid(at, '', "claim and expression can't both be set"));
      return undefined;
    }
    if (claim !== '' && prefix === null) this.#errors.push(required(`${at}.prefix`, prefixDetail));
    if (expression === '') return undefined;
    if (prefix !== null) {
      const detail = "prefix can't be set when expression is set";
      this.#errors.push(invalid(`${at}.prefix`, prefix, detail));
    }
    const compiled = yield* this.#compile(`${at}.expression`, expression, claimsToAny);
    return prefix === null ? compiled : undefined;
  }

  *#uid(
    { claim, expression }: { claim: string; expression: string },
    at: string,
  ): Generator<void, Expression | undefined> {
    if (claim !== '' && expression !== '') {
      this.#errors.push(invalid(at, '', "claim and expression can't both be set"));
      return undefined;
    }
    if (expression === '') return undefined;
    return yield* this.#compile(`${at}.expression`, expression, claimsToAny);
  }

  *#extra(
    list: readonly { key: string; valueExpression: string }[],
    at: string,
  ): Generator<void, CompiledExpressions['extra']> {
    const keys = new UniqueValues(this.#errors);
    const compiled: { key: string; value: Expression }[] = [];
    for (const [index, { key, valueExpression }] of list.entries()) {
      const place = indexPath(at, index);
      appendAll(this.#errors, this.#keyErrors(`${place}.key`, key));
      if (!keys.add(`${place}.key`, key)) continue;
      const field = `${place}.valueExpression`;
      if (valueExpression === '') {
        this.#errors.push(required(field, 'valueExpression is required'));
        continue;
      }
      const value = yield* this.#compile(field, valueExpression, claimsToAny);
      if (value !== undefined) compiled.push({ key, value });
      this.#recordEmailVerified(value);
    }
    return compiled;
  }

  #keyErrors(field: string, key: string): readonly FieldError[] {
    const errors: FieldError[] = domainPrefixedPath(field, key);
    if (key !== key.toLowerCase()) errors.push(invalid(field, key, 'key must be lowercase'));
    const { groupSuffix, labelDomain, productName } = this.#options.dialect;
    const reserved = [...new Set([groupSuffix, labelDomain])];
    const slash = key.indexOf('/');
    const domain = slash < 0 ? '' : key.slice(0, slash);
    if (reserved.some((suffix) => domain === suffix || domain.endsWith(`.${suffix}`))) {
      const whose = reserved.length === 1 ? 'its' : 'their';
      const product = capitalize(productName);
      const list = `${reserved.join(', ')} and ${whose} subdomains`;
      errors.push(invalid(field, key, `${list} are reserved for ${product} use`));
    }
    return errors;
  }

  *#userRules(
    { userValidationRules }: JwtAuthenticatorConfiguration,
    at: string,
  ): Generator<void, readonly CompiledRule[]> {
    const expressions = new UniqueValues(this.#errors);
    const compiled: CompiledRule[] = [];
    for (const [index, { expression, message }] of (userValidationRules ?? []).entries()) {
      const field = childPath(indexPath(at, index), 'expression');
      if (expression === '') {
        this.#errors.push(required(field, 'expression is required'));
        continue;
      }
      if (!expressions.add(field, expression)) continue;
      const rule = yield* this.#compile(field, expression, { subject: 'user', result: 'bool' });
      if (rule !== undefined) compiled.push({ rule, message });
    }
    return compiled;
  }

  *#compile(
    field: string,
    source: string,
    expected: Parameters<typeof compileExpression>[1],
  ): Generator<void, Expression | undefined> {
    yield;
    const compiled = yield* compileExpression(source, expected);
    if (!('problem' in compiled)) return compiled;
    this.#errors.push(invalid(field, source, compiled.problem));
    return undefined;
  }

  #recordEmailVerified(expression: Expression | undefined): void {
    const selection = { variable: 'claims', field: 'email_verified' };
    if (expression !== undefined && selects(expression.source, selection)) {
      this.#usesEmailVerified = true;
    }
  }
}

const claimsToAny = { subject: 'claims', result: 'any' } as const;
const prefixDetail =
  'prefix is required when claim is set. It can be set to an empty string to disable prefixing';
const emailVerifiedDetail =
  'claims.email_verified must be used in claimMappings.username.expression or ' +
  'claimMappings.extra[*].valueExpression or claimValidationRules[*].expression ' +
  'when claims.email is used in claimMappings.username.expression';

/** Why a text is not a bundle of certificates; undefined if it is. */
function bundleProblem(pem: string): string | undefined {
  const blocks = pemCertificates(pem);
  if (blocks.length === 0) return 'data does not contain any valid RSA or ECDSA certificates';
  try {
    for (const block of blocks) new X509Certificate(block);
    return undefined;
  } catch {
    return 'x509: malformed certificate';
  }
}

/** The certificates of a bundle, each as PEM. */
export function pemCertificates(pem: string): readonly string[] {
  const blocks = pemBlocks(pem).filter(({ type }) => type === 'CERTIFICATE');
  return blocks.map(({ text }) => text);
}
