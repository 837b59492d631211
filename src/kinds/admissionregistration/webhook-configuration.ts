import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import {
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
} from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, column, listAt, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { fill, objectAt, objectsAt } from '../fill.ts';

/** What the two kinds of webhook configuration share. */

function fillDefaults(object: JsonObject, options: { mutating: boolean }): void {
  for (const webhook of objectsAt(object, 'webhooks')) {
    fill(webhook, { failurePolicy: 'Fail', matchPolicy: 'Equivalent', timeoutSeconds: 10 });
    fill(webhook, { namespaceSelector: {}, objectSelector: {} });
    if (options.mutating) fill(webhook, { reinvocationPolicy: 'Never' });
    const service = objectAt(webhook, 'clientConfig', 'service');
    fill(service, { port: 443 });
    for (const rule of objectsAt(webhook, 'rules')) fill(rule, { scope: '*' });
  }
}

function validateWebhook(webhook: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(webhook, 'name');
  if (name === '') errors.push(required(`${path}.name`));
  else {
    const messages = dnsSubdomain(name);
    if (messages.length > 0) errors.push(invalid(`${path}.name`, name, messages.join(',')));
    else if (name.split('.').length < 3) {
      const detail = 'should be a domain with at least three segments separated by dots';
      errors.push(invalid(`${path}.name`, name, detail));
    }
  }
  const choice = (field: string, allowed: readonly string[]) => {
    const value = textAt(webhook, field);
    if (!allowed.includes(value)) errors.push(notSupported(`${path}.${field}`, value, allowed));
  };
  choice('failurePolicy', ['Fail', 'Ignore']);
  choice('matchPolicy', ['Equivalent', 'Exact']);
  const effects = textAt(webhook, 'sideEffects');
  const allowed = ['None', 'NoneOnDryRun'];
  if (effects === '') {
    errors.push(required(`${path}.sideEffects`, `must specify one of ${allowed.join(', ')}`));
  } else choice('sideEffects', allowed);
  const timeout = numberAt(webhook, 'timeoutSeconds');
  if (timeout < 1 || timeout > 30) {
    const detail = 'the timeout value must be between 1 and 30 seconds';
    errors.push(invalid(`${path}.timeoutSeconds`, timeout, detail));
  }
  const versions = listAt(webhook, 'admissionReviewVersions');
  if (versions.length === 0) {
    const detail = 'must specify one of v1, v1beta1';
    errors.push(required(`${path}.admissionReviewVersions`, detail));
  }
  return [...errors, ...validateClient(webhook, path), ...validateRules(webhook, path)];
}

function validateClient(webhook: JsonObject, path: string): FieldError[] {
  const url = at(webhook, 'clientConfig', 'url');
  const service = objectAt(webhook, 'clientConfig', 'service');
  const field = `${path}.clientConfig`;
  if ((url === undefined) === (service === undefined)) {
    return [required(field, 'exactly one of url or service is required')];
  }
  if (typeof url === 'string' && !url.startsWith('https://')) {
    const detail = `'https' is the only allowed URL scheme${url === '' ? '' : '; desired format: https://host[/path]'}`;
    return [invalid(`${field}.url`, url, detail)];
  }
  if (service === undefined) return [];
  return ['name', 'namespace']
    .filter((name) => textAt(service, name) === '')
    .map((name) => required(`${field}.service.${name}`, `service ${name} is required`));
}

function validateRules(webhook: JsonObject, path: string): FieldError[] {
  return objectsAt(webhook, 'rules').flatMap((rule, index) =>
    ['operations', 'apiGroups', 'apiVersions', 'resources']
      .filter((name) => listAt(rule, name).length === 0)
      .map((name) => required(`${path}.rules[${index}].${name}`)),
  );
}

function validate(object: JsonObject): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(object, 'webhooks').flatMap((webhook, index) => {
    const path = `webhooks[${index}]`;
    const name = textAt(webhook, 'name');
    const errors = validateWebhook(webhook, path);
    if (name !== '' && seen.has(name)) errors.push(duplicate(`${path}.name`, name));
    seen.add(name);
    return errors;
  });
}

const example = (dialect: Dialect, kind: string): JsonObject => ({
  apiVersion: `${dialect.group('admissionregistration')}/v1`,
  kind,
  metadata: { name: 'example' },
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

/** Either kind: they differ in names, and in what a mutating webhook says of being called again. */
export function webhookConfiguration(
  dialect: Dialect,
  options: { kind: string; resource: string; mutating: boolean },
): ResourceDef {
  const webhooks = column('Webhooks', (object) => listAt(object, 'webhooks').length, {
    type: 'integer',
    description: 'Number of webhooks.',
  });
  return defineKind({
    dialect,
    facts: 'admissionregistration',
    kind: options.kind,
    resource: options.resource,
    scope: 'Cluster',
    categories: ['api-extensions'],
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillDefaults(object, options),
        columns: [nameColumn, webhooks, ageColumn],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => validate(object),
      allowUnconditionalUpdate: false,
    },
    example: () => example(dialect, options.kind),
  });
}
