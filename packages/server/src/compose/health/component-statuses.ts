import type { ApiObject, Dialect } from '@wheelhouse/machinery';
import type { Store } from '@wheelhouse/store';
import type { ServerConfig } from '../config.ts';
import { runsManager } from '../controllers/controller-selection.ts';

/**
 * The components that upstream asks, as far as they are here: the store, and the controllers, which
 * run in this process. A scheduler there is none.
 */
export async function componentStatuses(options: {
  readonly config: Pick<ServerConfig, 'controllers'>;
  readonly dialect: Dialect;
  readonly store: Pick<Store, 'ping'>;
}): Promise<readonly ApiObject[]> {
  const { config, dialect, store } = options;
  const hasControllers = runsManager(config.controllers ?? ['*']);
  const noControllers = hasControllers ? undefined : 'no controllers run in this server';
  const storeProblem = await store.ping().then(
    () => undefined,
    () => 'the store does not answer',
  );
  return [
    statusOf('controller-manager', noControllers),
    statusOf(`${dialect.storeCheck}-0`, storeProblem),
    statusOf('scheduler', 'no scheduler runs in this server'),
  ];
}

function statusOf(name: string, problem: string | undefined): ApiObject {
  const status = problem === undefined ? 'True' : 'False';
  return {
    apiVersion: 'v1',
    kind: 'ComponentStatus',
    metadata: { name, creationTimestamp: null },
    conditions: [{ type: 'Healthy', status, message: problem ?? 'ok' }],
  };
}
