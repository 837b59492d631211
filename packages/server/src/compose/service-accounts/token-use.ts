import type { Dialect } from '@wheelhouse/machinery';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import {
  type RecordTokenUse,
  tokenUseRecorder,
} from '../../controllers/identity/legacy-token-tracking.ts';
import { createInside, type Inside } from '../../controllers/inside.ts';
import type { Registry } from '../../registry/registry.ts';
import { serverContext } from '../../registry/server-context.ts';
import type { ServerConfig } from '../config.ts';
import { type ControllerName, controllerSelection } from '../controllers/controller-selection.ts';

/** What records uses of legacy tokens; undefined where `--controllers` leaves it out. */
export function tokenUse(
  config: ServerConfig,
  {
    dialect,
    registry,
    catalogue,
  }: {
    readonly dialect: Dialect;
    readonly registry: Registry;
    readonly catalogue: Catalogue;
  },
): RecordTokenUse | undefined {
  if (!runs(config, 'legacy-token-tracking-controller')) return undefined;
  const { clock, logger } = config;
  const secrets = () => catalogue.snapshot().builtin('', 'secrets');
  return tokenUseRecorder({
    secrets,
    inside: insideAs({ dialect, registry }),
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
