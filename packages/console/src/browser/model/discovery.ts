import { jsonObject } from '@wheelhouse/machinery';
import {
  acceptedDiscoveryGroups,
  type Clock,
  type Dialect,
  dialectNames,
  dialectOf,
  type Timer,
} from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { type Kind, kindsOf } from './kinds.ts';
import type { ResourceRoute } from './route.ts';

/** What the server serves, as it was last told. */
export interface Discovered {
  /** Core kinds first. */
  readonly kinds: readonly Kind[];
  readonly dialect: Dialect;
}

/** What the server serves, kept up to date. */
export interface Discovery {
  current(): Discovered;
  /** Asks again now. Rejects as the API does; what was known stays. */
  refresh(): Promise<void>;
  close(): void;
}

/** How often the server is asked whether its kinds are others now; mostly it answers 304. */
const periodMs = 5_000;
const documentType = `application/json;g=${acceptedDiscoveryGroups[0]};v=v2;as=APIGroupDiscoveryList`;

interface Part {
  readonly path: '/api' | '/apis';
  etag: string | undefined;
  kinds: readonly Kind[];
}

/**
 * Asks what the server serves and goes on asking (a custom kind then appears by itself); `onChange`
 * is called when the answer is another one. Rejects as the API does when the first answer is none.
 */
export async function openDiscovery(options: {
  readonly api: Api;
  readonly clock: Clock;
  readonly onChange: (discovered: Discovered) => void;
}): Promise<Discovery> {
  const { api, clock, onChange } = options;
  const parts: readonly Part[] = [
    { path: '/api', etag: undefined, kinds: [] },
    { path: '/apis', etag: undefined, kinds: [] },
  ];
  await Promise.all(parts.map((part) => ask(api, part)));
  let discovered = discoveredIn(parts);
  let timer: Timer | undefined;
  let isClosed = false;
  const refresh = async (): Promise<void> => {
    const changes = await Promise.all(parts.map((part) => ask(api, part)));
    if (isClosed || !changes.includes(true)) return;
    discovered = discoveredIn(parts);
    onChange(discovered);
  };
  const wait = (): void => {
    if (isClosed) return;
    // A failure now is told by whatever else the user does; the next turn asks again.
    timer = clock.after(
      periodMs,
      () =>
        void refresh()
          .catch(() => {})
          .then(wait),
    );
  };
  wait();
  return {
    current: () => discovered,
    refresh,
    close() {
      isClosed = true;
      timer?.stop();
    },
  };
}

/** Whether the part is another one now. */
async function ask(api: Api, part: Part): Promise<boolean> {
  const { path, etag } = part;
  const answer = await api.send({ path, accept: documentType, etag });
  if (answer.status === 304 || (etag !== undefined && answer.etag === etag)) return false;
  part.kinds = kindsOf(jsonObject(JSON.parse(answer.text)));
  part.etag = answer.etag;
  return true;
}

function discoveredIn(parts: readonly Part[]): Discovered {
  const kinds = parts.flatMap((part) => part.kinds);
  const groups = new Set(kinds.map(({ group }) => group));
  const dialects = dialectNames.map(dialectOf);
  const spoken = dialects.find((one) => groups.has(one.group('authorization')));
  return { kinds, dialect: spoken ?? dialectOf('svc') };
}

/** The kind that a route names; undefined when the server does not serve it now. */
export function kindAt(
  { kinds }: Discovered,
  { group, version, resource }: ResourceRoute,
): Kind | undefined {
  return kinds.find(
    (kind) => kind.group === group && kind.version === version && kind.resource === resource,
  );
}
