import type { Dialect } from '@wheelhouse/machinery';
import {
  type RecordTokenUse,
  tokenUseRecorder,
} from '../../controllers/identity/legacy-token-tracking.ts';
import { createInside, type InsideUser } from '../../controllers/inside.ts';
import { serverContext } from '../../registry/registry.ts';
import type { ServerConfig } from '../config.ts';
import type { Around } from '../context.ts';
import { type ControllerName, controllerSelection } from '../controllers/controller-selection.ts';

/** What records uses of legacy tokens; undefined where `--controllers` leaves it out. */
export function tokenUse({ config, dialect, api }: Around): RecordTokenUse | undefined {
  if (!runs(config, 'legacy-token-tracking-controller')) return undefined;
  const { clock, logger } = config;
  return tokenUseRecorder({
    secrets: () => api.catalogue.snapshot().builtin('', 'secrets'),
    inside: createInside({ registry: api.registry, ...ownUser(dialect) }),
    dialect,
    clock,
    logger,
  });
}

/** Whether `--controllers` selects a controller. */
export function runs({ controllers = ['*'] }: ServerConfig, name: ControllerName): boolean {
  return controllerSelection(controllers)(name);
}

/** As whom the server itself writes its own records. */
export const ownUser = (dialect: Dialect): InsideUser => ({
  controller: dialect.component('apiserver'),
  user: serverContext.user,
});
