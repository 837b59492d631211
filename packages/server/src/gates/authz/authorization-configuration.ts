import {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  optional,
  structType,
  textType,
} from '@wheelhouse/codec';
import {
  aggregateText,
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  objectsOf,
  textOf,
} from '@wheelhouse/machinery';
import { parseGoDuration, type Schema } from '@wheelhouse/schema';
import type { AccessReviewVersion, AuthorizerType } from './authorizer-types.ts';
import { type MatchCondition, matchesAll } from './match-conditions.ts';
import { validateAuthorizers } from './validate-authorizers.ts';
import type { MatchRequest, WebhookAuthorizerSettings } from './webhook-authorizer.ts';

/** How to reach a webhook, and what for. */
export interface ConfiguredWebhook extends Omit<WebhookAuthorizerSettings, 'selectors'> {
  readonly timeoutMs: number;
  /** Undefined: as a workload of the server finds it. */
  readonly kubeConfigFile: string | undefined;
  readonly matches: MatchRequest | undefined;
  /** What `matches` judges by, to tell configurations apart. */
  readonly expressions: readonly string[];
}

/** One authorizer of the chain. */
export type ConfiguredAuthorizer =
  | { readonly type: Exclude<AuthorizerType, 'Webhook'>; readonly name: string }
  | { readonly type: 'Webhook'; readonly name: string; readonly webhook: ConfiguredWebhook };

export interface ConfigurationRules {
  readonly dialect: Dialect;
  /** Whether conditions may speak of selectors. */
  readonly selectors: 'told' | 'left out';
  /** What is wrong with a kubeconfig's path; undefined for a file that can be read. */
  readonly fileProblem: (path: string) => string | undefined;
  /** Types that must stay, because they were there at the start. */
  readonly requiredTypes: ReadonlySet<AuthorizerType>;
}

const durationType: Schema = { type: 'string', format: 'duration' };
const configurationType = structType('AuthorizationConfiguration', {
  authorizers: listType(
    structType('AuthorizerConfiguration', {
      type: textType,
      name: textType,
      webhook: optional(
        structType('WebhookConfiguration', {
          authorizedTTL: durationType,
          unauthorizedTTL: durationType,
          timeout: durationType,
          subjectAccessReviewVersion: textType,
          matchConditionSubjectAccessReviewVersion: textType,
          failurePolicy: textType,
          connectionInfo: structType('WebhookConnectionInfo', {
            type: textType,
            kubeConfigFile: optional(textType),
          }),
          matchConditions: listType(structType('WebhookMatchCondition', { expression: textType })),
        }),
      ),
    }),
  ),
});

export const authorizationFormat = {
  kind: 'AuthorizationConfiguration',
  group: 'apiserver.config',
  versions: { v1: configurationType, v1beta1: configurationType, v1alpha1: configurationType },
} as const satisfies ConfigurationFormat;

/**
 * Reads an AuthorizationConfiguration (AUTHZ-3), YAML or JSON, of any of its versions, and judges it
 * by upstream's rules. Rejects with ConfigurationError, all that is wrong in one line.
 */
export async function loadAuthorizationConfiguration(
  text: string,
  rules: ConfigurationRules,
): Promise<readonly ConfiguredAuthorizer[]> {
  const object = await decoded(text, rules.dialect);
  const entries = objectsOf(member(object, 'authorizers')).map(withDefaults);
  const { errors, conditions } = validateAuthorizers(entries, rules);
  if (errors.length > 0) throw new ConfigurationError(aggregateText(errors));
  const authorizers = entries.map((one, index) => authorizerOf(one, conditions.get(index) ?? []));
  const misnamed = authorizers.flatMap(nameProblem);
  const missing = [...rules.requiredTypes].filter(
    (type) => !authorizers.some((one) => one.type === type),
  );
  if (missing.length > 0) misnamed.push(`missing required types: [${missing.sort().join(' ')}]`);
  if (misnamed.length > 0) throw new ConfigurationError(aggregateText(misnamed));
  return authorizers;
}

async function decoded(text: string, dialect: Dialect): Promise<JsonObject> {
  // Nothing at all is upstream's empty configuration, which then has no authorizers.
  if (text === '') return {};
  const group = dialect.group(authorizationFormat.group);
  try {
    const { object } = await decodeConfiguration(text, { ...authorizationFormat, group });
    return object;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new ConfigurationError(
      `failed to load AuthorizationConfiguration from file: ${error.message}`,
    );
  }
}

function withDefaults(authorizer: JsonObject): JsonObject {
  const { webhook } = authorizer;
  if (!isObject(webhook)) return authorizer;
  const { authorizedTTL, unauthorizedTTL } = webhook;
  return {
    ...authorizer,
    webhook: {
      ...webhook,
      authorizedTTL: authorizedTTL === '0s' ? '5m0s' : (authorizedTTL ?? ''),
      unauthorizedTTL: unauthorizedTTL === '0s' ? '30s' : (unauthorizedTTL ?? ''),
    },
  };
}

/** Authorizers other than webhooks have their type's name, as those of flags have. */
function nameProblem({ type, name }: ConfiguredAuthorizer): string[] {
  const expected = type.toLowerCase();
  if (type === 'Webhook' || name === expected) return [];
  return [`expected name ${expected} for authorizer ${type} instead of ${name}`];
}

function authorizerOf(
  entry: JsonObject,
  conditions: readonly MatchCondition[],
): ConfiguredAuthorizer {
  const [type, name] = [textOf(entry['type']) as AuthorizerType, textOf(entry['name'])];
  if (type !== 'Webhook') return { type, name };
  const webhook = isObject(entry['webhook']) ? entry['webhook'] : {};
  const connection = isObject(webhook['connectionInfo']) ? webhook['connectionInfo'] : {};
  const file = connection['kubeConfigFile'];
  return {
    type,
    name,
    webhook: {
      name,
      version: textOf(webhook['subjectAccessReviewVersion']) as AccessReviewVersion,
      timeoutMs: millisecondsOf(webhook['timeout']),
      authorizedTtlMs: millisecondsOf(webhook['authorizedTTL']),
      unauthorizedTtlMs: millisecondsOf(webhook['unauthorizedTTL']),
      failurePolicy: webhook['failurePolicy'] === 'Deny' ? 'Deny' : 'NoOpinion',
      kubeConfigFile: typeof file === 'string' ? file : undefined,
      expressions: conditions.map(({ expression }) => expression),
      matches: conditions.length === 0 ? undefined : (spec) => matchesAll(conditions, spec),
    },
  };
}

function millisecondsOf(value: JsonValue | undefined): number {
  return Number(parseGoDuration(textOf(value)) ?? 0n) / 1e6;
}
