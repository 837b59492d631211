import {
  type Dialect,
  dns1035Label,
  dnsSubdomain,
  duplicate,
  type FieldError,
  invalid,
  invalidGo,
  type JsonObject,
  type JsonValue,
  notSupported,
  required,
  seenBefore,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, listAt, nameColumn } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import type {
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
  WebhookClientConfig,
} from '../gen/types/admissionregistration/v1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, goStrings, same } from '../rules/checks.ts';
import { fillAbsent, forEachSteps, objectsAt } from '../rules/fill.ts';
import { webhookServiceErrors, webhookUrlErrors } from '../webhook-client.ts';
import {
  type AdmissionKindOptions,
  type ExpressionChecker,
  validateMatchConditions,
} from './expressions.ts';
import { validateOperationRule } from './match-resources.ts';

/** MutatingWebhookConfiguration: webhooks that may change writes. */
export function mutatingWebhookConfiguration(
  dialect: Dialect,
  options: AdmissionKindOptions = {},
): ResourceDef {
  return webhookConfiguration(dialect, {
    ...options,
    kind: 'MutatingWebhookConfiguration',
    mutating: true,
  });
}

/** Defines either kind; only mutating webhooks have a `reinvocationPolicy`. */
function webhookConfiguration(
  dialect: Dialect,
  options: { kind: string; mutating: boolean } & AdmissionKindOptions,
): ResourceDef {
  const { mutating, checkExpression: check } = options;
  const webhooks = column('Webhooks', (object) => listAt(object, 'webhooks').length, {
    type: 'integer',
    description: 'Number of webhooks.',
  });
  return defineKind({
    dialect,
    facts: 'admissionregistration',
    kind: options.kind,
    scope: 'Cluster',
    categories: ['api-extensions'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults((object: Stored<ValidatingWebhookConfiguration>) =>
          fillSteps(object, options),
        ),
        columns: [nameColumn, webhooks, ageColumn],
      },
    ],
    generation: true,
    strategy: {
      extraMetadataChecks: { '': ['whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validateWebhooks(object, { mutating, check }),
      validateUpdate: (_, object, old) => validateWebhooks(object, { mutating, check, old }),
      allowUnconditionalUpdate: false,
    },
    example,
  });
}

function fillSteps(
  object: Stored<ValidatingWebhookConfiguration>,
  options: { mutating: boolean },
): Generator<void, void> {
  return forEachSteps(object.webhooks ?? [], (webhook) => {
    fillAbsent(webhook, { failurePolicy: 'Fail', matchPolicy: 'Equivalent', timeoutSeconds: 10 });
    fillAbsent(webhook, { namespaceSelector: {}, objectSelector: {} });
    if (options.mutating) fillAbsent(webhook, { reinvocationPolicy: 'Never' });
    const service = webhook.clientConfig?.service;
    fillAbsent(service, { port: 443 });
    return forEachSteps(webhook.rules ?? [], (rule) => fillAbsent(rule, { scope: '*' }));
  });
}

/** Validates the webhooks of a configuration; `old` is absent on create. */
function* validateWebhooks(
  object: Stored<ValidatingWebhookConfiguration>,
  options: {
    readonly mutating: boolean;
    readonly old?: Stored<ValidatingWebhookConfiguration>;
    readonly check?: ExpressionChecker | undefined;
  },
): Generator<void, FieldError[]> {
  const tolerated = toleratedOf(object, options.old);
  const names = new Set<string>();
  return yield* flatMapSteps(object.webhooks ?? [], function* (webhook, index) {
    const path = `webhooks[${index}]`;
    const name = webhook.name ?? '';
    const errors = [
      ...(yield* validateWebhook(webhook, path, { ...options, tolerated })),
      ...(yield* validateVersions(webhook, `${path}.admissionReviewVersions`, tolerated)),
    ];
    if (!tolerated.repeatedNames && name !== '' && names.has(name)) {
      errors.push(duplicate(`${path}.name`, name));
    }
    names.add(name);
    return errors;
  });
}

/** Rules that an update may break, because the old object broke them. */
interface Tolerated {
  readonly sideEffects: boolean;
  readonly reviewVersions: boolean;
  readonly repeatedNames: boolean;
  /** Whether match conditions are not validated, because they are unchanged. */
  readonly conditions: boolean;
}

/** Values of `sideEffects` that promise none in a dry run. */
const safeSideEffects = ['None', 'NoneOnDryRun'];

const reviewVersions = ['v1', 'v1beta1'];

function toleratedOf(
  object: Stored<ValidatingWebhookConfiguration>,
  old: Stored<ValidatingWebhookConfiguration> | undefined,
): Tolerated {
  const webhooks = old?.webhooks ?? [];
  const conditionsOf = (
    configuration: Stored<ValidatingWebhook | ValidatingWebhookConfiguration>,
  ) => objectsAt(configuration, 'webhooks').map((webhook) => webhook['matchConditions'] ?? null);
  const names = webhooks.map((webhook) => webhook.name ?? '');
  return {
    sideEffects: webhooks.some((webhook) => !safeSideEffects.includes(webhook.sideEffects ?? '')),
    reviewVersions: webhooks.some((webhook) => {
      const versions = (webhook.admissionReviewVersions ?? []).map(String);
      return versions.length > 0 && !versions.some((version) => reviewVersions.includes(version));
    }),
    repeatedNames: new Set(names).size < names.length,
    conditions: old !== undefined && same(conditionsOf(object), conditionsOf(old)),
  };
}

function* validateWebhook(
  webhook: Stored<ValidatingWebhook>,
  path: string,
  options: {
    readonly mutating: boolean;
    readonly tolerated: Tolerated;
    readonly check?: ExpressionChecker | undefined;
  },
): Generator<void, FieldError[]> {
  const conditions = webhook.matchConditions ?? [];
  const validateEnum = (name: string, allowed: readonly string[]): FieldError[] => {
    const value = at(webhook, name);
    if (value === undefined || allowed.includes(String(value))) return [];
    return [notSupported(`${path}.${name}`, value, allowed)];
  };
  return [
    ...validateName(webhook.name ?? '', `${path}.name`),
    ...(yield* flatMapSteps(webhook.rules ?? [], (rule, index) =>
      validateOperationRule(rule, `${path}.rules[${index}]`),
    )),
    ...validateEnum('failurePolicy', ['Fail', 'Ignore']),
    ...validateEnum('matchPolicy', ['Equivalent', 'Exact']),
    ...validateEffects(webhook, path, options.tolerated),
    ...validateTimeout(webhook, path),
    ...validateSelectors(webhook, path),
    ...(options.mutating ? validateEnum('reinvocationPolicy', ['IfNeeded', 'Never']) : []),
    ...validateClient(webhook.clientConfig ?? {}, `${path}.clientConfig`),
    ...(options.tolerated.conditions
      ? []
      : yield* validateMatchConditions(conditions, `${path}.matchConditions`, {
          check: options.check,
        })),
  ];
}

function validateName(name: string, field: string): FieldError[] {
  if (name === '') return [required(field)];
  const messages = dnsSubdomain(name);
  if (messages.length > 0) return [invalid(field, name, messages.join(','))];
  if (name.split('.').length >= 3) return [];
  const detail = 'should be a domain with at least three segments separated by dots';
  return [invalid(field, name, detail)];
}

const allSideEffects = [...safeSideEffects, 'Some', 'Unknown'];

function validateEffects(
  webhook: Stored<ValidatingWebhook>,
  path: string,
  tolerated: Tolerated,
): FieldError[] {
  const field = `${path}.sideEffects`;
  const allowed = tolerated.sideEffects ? allSideEffects : safeSideEffects;
  const value: JsonValue | undefined = webhook.sideEffects;
  if (value === undefined || value === null) {
    return [required(field, `must specify one of ${allowed.join(', ')}`)];
  }
  return allowed.includes(String(value)) ? [] : [notSupported(field, value, allowed)];
}

function validateTimeout(webhook: Stored<ValidatingWebhook>, path: string): FieldError[] {
  const seconds = webhook.timeoutSeconds ?? 0;
  if (webhook.timeoutSeconds === undefined || (seconds >= 1 && seconds <= 30)) return [];
  const detail = 'the timeout value must be between 1 and 30 seconds';
  return [invalid(`${path}.timeoutSeconds`, seconds, detail)];
}

function validateSelectors(webhook: Stored<ValidatingWebhook>, path: string): FieldError[] {
  return (['namespaceSelector', 'objectSelector'] as const).flatMap((name) => {
    const selector = webhook[name];
    return validateLabelSelector(selector, `${path}.${name}`);
  });
}

function validateClient(client: Stored<WebhookClientConfig>, path: string): FieldError[] {
  const url = client.url;
  const service = client.service;
  if ((url === undefined) === (service === undefined)) {
    return [required(path, 'exactly one of url or service is required')];
  }
  if (service === undefined) return webhookUrlErrors(String(url), `${path}.url`);
  // kube-apiserver passes name and namespace in the wrong order, so the fields are swapped.
  const reference = {
    name: service.namespace ?? '',
    namespace: service.name ?? '',
    path: service.path ?? '',
    port: service.port === undefined ? 443 : (service.port ?? 0),
  };
  return webhookServiceErrors(reference, `${path}.service`);
}

function* validateVersions(
  webhook: Stored<ValidatingWebhook>,
  field: string,
  tolerated: Tolerated,
): Generator<void, FieldError[]> {
  const versions = (webhook.admissionReviewVersions ?? []).map(String);
  if (versions.length === 0) {
    return [required(field, `must specify one of ${reviewVersions.join(', ')}`)];
  }
  const isRepeated = seenBefore();
  const errors = yield* flatMapSteps(versions, (version, index) => {
    const place = `${field}[${index}]`;
    if (isRepeated(version)) return [invalid(place, version, 'duplicate version')];
    return dns1035Label(version).map((message) => invalid(place, version, message));
  });
  const isSupported = versions.some((version) => reviewVersions.includes(version));
  if (isSupported || tolerated.reviewVersions) return errors;
  const detail = `must include at least one of ${reviewVersions.join(', ')}`;
  return [...errors, invalidGo(field, () => goStrings(versions), detail)];
}

const example = (): JsonObject => ({
  webhooks: [
    {
      name: 'check.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      clientConfig: { url: 'https://127.0.0.1:9443/check' },
      rules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
      ],
    },
  ],
});

/** ValidatingWebhookConfiguration: webhooks that may reject writes. */
export function validatingWebhookConfiguration(
  dialect: Dialect,
  options: AdmissionKindOptions = {},
): ResourceDef {
  return webhookConfiguration(dialect, {
    ...options,
    kind: 'ValidatingWebhookConfiguration',
    mutating: false,
  });
}
