import {
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  optional,
  structType,
  textType,
  truthType,
} from '@wheelhouse/codec';
import type { Dialect, JsonObject } from '@wheelhouse/machinery';

/** A claim with a prefix, or an expression; unset members are empty. */
export interface PrefixedClaimOrExpression {
  readonly claim: string;
  /** Null: unset, which differs from empty. */
  readonly prefix: string | null;
  readonly expression: string;
}

/** A claim with its required value, or an expression that must be true. */
interface ClaimValidationRule {
  readonly claim: string;
  readonly requiredValue: string;
  readonly expression: string;
  readonly message: string;
}

/** How tokens of one issuer map to users (AUTHN-7, AUTHN-8). Null lists are empty. */
export interface JwtAuthenticatorConfiguration {
  readonly issuer: {
    readonly url: string;
    readonly discoveryURL: string | null;
    /** PEM; empty: the host's roots. */
    readonly certificateAuthority: string;
    readonly audiences: readonly string[] | null;
    readonly audienceMatchPolicy: string;
  };
  readonly claimValidationRules: readonly ClaimValidationRule[] | null;
  readonly claimMappings: {
    readonly username: PrefixedClaimOrExpression;
    readonly groups: PrefixedClaimOrExpression;
    readonly uid: { readonly claim: string; readonly expression: string };
    readonly extra: readonly { readonly key: string; readonly valueExpression: string }[] | null;
  };
  readonly userValidationRules:
    | readonly { readonly expression: string; readonly message: string }[]
    | null;
}

/** Whether requests without credentials are allowed. */
export interface AnonymousConfiguration {
  readonly enabled: boolean;
  /** Paths open to anonymous requests; empty: all. */
  readonly conditions: readonly { readonly path: string }[] | null;
}

/** The content of the `--authentication-config` file (AUTHN-8). */
export interface AuthenticationConfiguration {
  readonly jwt: readonly JwtAuthenticatorConfiguration[] | null;
  readonly anonymous: AnonymousConfiguration | null;
}

const prefixed = structType('PrefixedClaimOrExpression', {
  claim: textType,
  prefix: optional(textType),
  expression: textType,
});

const jwtType = structType('JWTAuthenticator', {
  issuer: structType('Issuer', {
    url: textType,
    discoveryURL: optional(textType),
    certificateAuthority: textType,
    audiences: listType(textType),
    audienceMatchPolicy: textType,
  }),
  claimValidationRules: listType(
    structType('ClaimValidationRule', {
      claim: textType,
      requiredValue: textType,
      expression: textType,
      message: textType,
    }),
  ),
  claimMappings: structType('ClaimMappings', {
    username: prefixed,
    groups: prefixed,
    uid: structType('ClaimOrExpression', { claim: textType, expression: textType }),
    extra: listType(structType('ExtraMapping', { key: textType, valueExpression: textType })),
  }),
  userValidationRules: listType(
    structType('UserValidationRule', { expression: textType, message: textType }),
  ),
});

/** Both served versions have the same members. */
const fileType = structType('AuthenticationConfiguration', {
  jwt: listType(jwtType),
  anonymous: optional(
    structType('AnonymousAuthConfig', {
      enabled: truthType,
      conditions: listType(structType('AnonymousAuthCondition', { path: textType })),
    }),
  ),
});

/** The file of `--authentication-config` (AUTHN-8). */
export const authenticationFormat = {
  kind: 'AuthenticationConfiguration',
  group: 'apiserver.config',
  versions: { v1beta1: fileType, v1alpha1: fileType },
} as const satisfies ConfigurationFormat;

/** Decodes the text of a file without validating its values. Rejects with ConfigurationError. */
export async function readAuthenticationConfiguration(
  text: string,
  dialect: Dialect,
): Promise<AuthenticationConfiguration> {
  const { object } = await decodeConfiguration(text, {
    ...authenticationFormat,
    group: dialect.group(authenticationFormat.group),
  });
  return object as JsonObject & AuthenticationConfiguration;
}
