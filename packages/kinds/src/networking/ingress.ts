import { type Dialect, dnsSubdomain, type JsonObject } from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';
import { objectsAt } from '../rules/fill.ts';
import {
  ingressWarnings,
  validateIngressChange,
  validateIngressStatus,
  validateNewIngress,
} from './ingress-rules.ts';

function hosts(object: JsonObject): string {
  const all = objectsAt(object, 'spec', 'rules')
    .map((rule) => textAt(rule, 'host'))
    .filter((host) => host !== '');
  if (all.length === 0) return '*';
  const shown = all.slice(0, 3).join(',');
  return all.length > 3 ? `${shown} + ${all.length - 3} more...` : shown;
}

function addresses(object: JsonObject): string {
  const all = objectsAt(object, 'status', 'loadBalancer', 'ingress')
    .map((one) => textAt(one, 'ip') || textAt(one, 'hostname'))
    .filter((address) => address !== '');
  return [...new Set(all)].sort().join(',');
}

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
      metadataTold: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validateNewIngress(object, dialect),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateIngressStatus(object)
          : validateIngressChange(object, old),
      warnings: (object, old) => ingressWarnings(object, old, dialect),
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
