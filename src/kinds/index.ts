import type { ResourceDef } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import { configMap } from './core/config-map.ts';
import { namespace } from './core/namespace.ts';
import { secret } from './core/secret.ts';
import { serviceAccount } from './core/service-account.ts';

const kinds: readonly ((dialect: Dialect) => ResourceDef)[] = [
  namespace,
  configMap,
  secret,
  serviceAccount,
];

/** All built-in kinds in the dialect's names. */
export function builtinKinds(dialect: Dialect): readonly ResourceDef[] {
  return kinds.map((kind) => kind(dialect));
}
