import type { Dialect } from '@wheelhouse/machinery';
import {
  type RecordTokenUse,
  tokenUseRecorder,
} from '../../controllers/identity/legacy-token-tracking.ts';
import { createInside, type Inside } from '../../controllers/inside.ts';
import type { Registry } from '../../registry/registry.ts';
import { serverContext } from '../../registry/server-context.ts';
import type { ServerConfig } from '../config.ts';
import type { Around } from '../context.ts';
import { type ControllerName, controllerSelection } from '../controllers/controller-selection.ts';

/** What records uses of legacy tokens; undefined where `--controllers` leaves it out. */
export function tokenUse({ config, dialect, api }: Around): RecordTokenUse | undefined {
  if (!runs(config, 'legacy-token-tracking-controller')) return undefined;
  const { clock, logger } = config;
  return tokenUseRecorder({
    secrets: () => api.catalogue.snapshot().builtin('', 'secrets'),
    inside: insideAs({ dialect, registry: api.registry }),
    dialect,
    clock,
    logger,
  });
}

/** Whether `--controllers` selects a controller. */
export function runs({ controllers = ['*'] }: ServerConfig, name: ControllerName): boolean {
  return controllerSelection(controllers)(name);
}

/** The API as the server itself uses it for its own records. */
export function insideAs({ dialect, registry }: { dialect: Dialect; registry: Registry }): Inside {
  const controller = dialect.component('apiserver');
  return createInside({ registry, controller, user: serverContext.user });
}
