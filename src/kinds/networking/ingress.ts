import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid, notSupported, required } from '../../meta/field-error.ts';
import { breaks, dns1035Label, dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, column, listAt, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { objectAt, objectsAt } from '../fill.ts';

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix'];

function validateBackend(backend: JsonObject | undefined, path: string): FieldError[] {
  const service = objectAt(backend, 'service');
  const hasResource = objectAt(backend, 'resource') !== undefined;
  if (hasResource && service !== undefined) {
    const detail = 'cannot set both resource and service backends';
    return [invalid(path, '', detail)];
  }
  if (hasResource) return [];
  if (service === undefined) return [required(path, 'resource or service backend is required')];
  const name = textAt(service, 'name');
  const errors =
    name === ''
      ? [required(`${path}.service.name`)]
      : breaks(`${path}.service.name`, name, dns1035Label);
  if (textAt(service, 'port', 'name') === '' && numberAt(service, 'port', 'number') === 0) {
    errors.push(required(path, 'port name or number is required'));
  }
  return errors;
}

function validatePath(rule: JsonObject, path: string): FieldError[] {
  const type = textAt(rule, 'pathType');
  const value = textAt(rule, 'path');
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${path}.pathType`, 'pathType must be specified'));
  else if (!pathTypes.includes(type))
    errors.push(notSupported(`${path}.pathType`, type, pathTypes));
  if (value !== '' || type === 'Exact' || type === 'Prefix') {
    if (!value.startsWith('/')) {
      errors.push(invalid(`${path}.path`, value, 'must be an absolute path'));
    }
  }
  return [...errors, ...validateBackend(objectAt(rule, 'backend'), `${path}.backend`)];
}

function validate(object: JsonObject): FieldError[] {
  const rules = objectsAt(object, 'spec', 'rules');
  const fallback = objectAt(object, 'spec', 'defaultBackend');
  if (rules.length === 0 && fallback === undefined) {
    return [invalid('spec', [], 'either `defaultBackend` or `rules` must be specified')];
  }
  const errors = fallback === undefined ? [] : validateBackend(fallback, 'spec.defaultBackend');
  rules.forEach((rule, index) => {
    const path = `spec.rules[${index}]`;
    const host = textAt(rule, 'host');
    if (host !== '') {
      const bare = host.startsWith('*.') ? host.slice(2) : host;
      errors.push(...dnsSubdomain(bare).map((text) => invalid(`${path}.host`, host, text)));
    }
    const http = objectAt(rule, 'http');
    if (http === undefined) return;
    const paths = objectsAt(http, 'paths');
    if (paths.length === 0) errors.push(required(`${path}.http.paths`));
    paths.forEach((one, at) => {
      errors.push(...validatePath(one, `${path}.http.paths[${at}]`));
    });
  });
  return errors;
}

function hosts(object: JsonObject): string {
  const all = objectsAt(object, 'spec', 'rules')
    .map((rule) => textAt(rule, 'host'))
    .filter((host) => host !== '');
  if (all.length === 0) return '*';
  const shown = all.slice(0, 3).join(',');
  return all.length > 3 ? `${shown} + ${all.length - 3} more...` : shown;
}

const addresses = (object: JsonObject) =>
  objectsAt(object, 'status', 'loadBalancer', 'ingress')
    .map((one) => textAt(one, 'ip') || textAt(one, 'hostname'))
    .join(',');

/** Ingress: how HTTP comes in from outside. */
export function ingress(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'networking',
    kind: 'Ingress',
    resource: 'ingresses',
    scope: 'Namespaced',
    shortNames: ['ing'],
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Class', (object) => textAt(object, 'spec', 'ingressClassName') || '<none>', {
            description: 'Which controller serves it.',
          }),
          column('Hosts', hosts, { description: 'Hosts it serves.' }),
          column('Address', addresses, { description: 'Where it is reached.' }),
          column(
            'Ports',
            (object) => (listAt(object, 'spec', 'tls').length > 0 ? '80, 443' : '80'),
            { description: 'Ports it is reached on.' },
          ),
          ageColumn,
        ],
      },
    ],
    storage: { prefix: '/registry/ingress/' },
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object) =>
        context.subresource === 'status' ? [] : validate(object),
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: `${dialect.group('networking')}/v1`,
      kind: 'Ingress',
      metadata: { name: 'example', namespace: 'default' },
      spec: {
        rules: [
          {
            host: 'example.com',
            http: {
              paths: [
                {
                  path: '/',
                  pathType: 'Prefix',
                  backend: { service: { name: 'example', port: { number: 80 } } },
                },
              ],
            },
          },
        ],
      },
    }),
  });
}
