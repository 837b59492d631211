import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { Ingress } from '../gen/types/networking/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import type { Stored } from '../stored.ts';
import {
  ingressWarnings,
  validateIngressChange,
  validateIngressStatus,
  validateNewIngress,
} from './ingress-rules.ts';

function hosts(object: Stored<Ingress>): string {
  const all = (object.spec?.rules ?? [])
    .map((rule) => rule.host ?? '')
    .filter((host) => host !== '');
  if (all.length === 0) return '*';
  const shown = all.slice(0, 3).join(',');
  return all.length > 3 ? `${shown} + ${all.length - 3} more...` : shown;
}

function addresses(object: Stored<Ingress>): string {
  const all = (object.status?.loadBalancer?.ingress ?? [])
    .map((one) => (one.ip ?? '') || (one.hostname ?? ''))
    .filter((address) => address !== '');
  return [...new Set(all)].sort().join(',');
}

/** Ingress: how HTTP comes in from outside. */
export function ingress(dialect: Dialect): ResourceDef {
  return defineKind<Ingress>({
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
          column('Class', (object) => (object.spec?.ingressClassName ?? '') || '<none>', {
            description: 'Which controller serves it.',
          }),
          column('Hosts', hosts, { description: 'Hosts it serves.' }),
          column('Address', addresses, { description: 'Where it is reached.' }),
          column('Ports', (object) => ((object.spec?.tls ?? []).length > 0 ? '80, 443' : '80'), {
            description: 'Ports it is reached on.',
          }),
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
