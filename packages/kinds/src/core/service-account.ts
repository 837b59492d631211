import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ServiceAccount } from '../gen/types/core/v1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';

/** ServiceAccount: an identity for processes; its `token` subresource issues credentials. */
export function serviceAccount(dialect: Dialect): ResourceDef {
  const enforcing = dialect.label('enforce-mountable-secrets');
  const secretsColumn = column('Secrets', (object) => listAt(object, 'secrets').length, {
    description: 'Number of secrets listed.',
  });
  return defineKind<ServiceAccount>({
    dialect,
    facts: 'core',
    kind: 'ServiceAccount',
    scope: 'Namespaced',
    shortNames: ['sa'],
    versions: [{ version: 'v1', columns: [nameColumn, secretsColumn, ageColumn] }],
    subresources: [
      {
        name: 'token',
        verbs: ['create'],
        kind: { group: dialect.group('authentication'), version: 'v1', kind: 'TokenRequest' },
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      prepareForCreate: (_, object) => keepNamesOnly(object),
      prepareForUpdate: (_, object) => keepNamesOnly(object),
      deleteAnswers: 'object',
      warnings: (object, old) =>
        isAnnotated(object, enforcing) && !isAnnotated(old, enforcing)
          ? [
              `metadata.annotations[${enforcing}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
            ]
          : [],
    },
    example: () => ({ automountServiceAccountToken: false }),
  });
}

/** Reduces references to secrets to names in the account's own namespace. */
function keepNamesOnly(object: Stored<ServiceAccount>): void {
  if (object.secrets === undefined) return;
  object.secrets = object.secrets.map(({ name }) => (name === undefined ? {} : { name }));
}

const isAnnotated = (object: Stored<ServiceAccount> | undefined, key: string) =>
  Object.hasOwn(object?.metadata.annotations ?? {}, key);
