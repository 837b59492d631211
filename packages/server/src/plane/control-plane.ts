import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { definitionsPrefix } from '@wheelhouse/kinds';
import {
  type Dialect,
  dialectOf,
  MovableClock,
  pause,
  programClock,
  silentLogger,
  systemClock,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Checkpoint, CheckpointedStore } from '@wheelhouse/store';
import { readOptions } from '../compose/command-line.ts';
import type { ServerConfig } from '../compose/config.ts';
import { type RunningServer, startServer } from '../compose/server.ts';
import { ensureAdminToken, writeAdminKubeconfig } from '../files/data-directory.ts';
import { FlagError } from '../flags/flags.ts';
import type { Authenticator } from '../gates/authn/contract.ts';
import { bearerToken } from '../gates/authn/credentials.ts';
import { checkMembers, checkUser } from './checks.ts';
import type { KindFinder } from './plane-client.ts';
import { PlaneTap, planeUser } from './plane-tap.ts';
import type { Manifest } from './sources.ts';
import type {
  ControlPlane,
  ControlPlaneOptions,
  ManifestObject,
  ManifestSource,
  PlaneClient,
  PlaneSnapshot,
  PlaneUser,
  RestoredPlane,
  WebhookEndpoint,
} from './types.ts';

/** How the clients of a plane reach it. */
interface PlaneAddress {
  readonly url: string;
  readonly caPem: string;
  /** The token of the plane itself, whose requests are neither recorded nor affected by faults. */
  readonly ownToken: string;
  readonly dialect: Dialect;
  readonly webhooks: WebhookEndpoint | undefined;
  /** Returns a different value when the served kinds change. */
  readonly catalogue: () => unknown;
}

/** The clients of a plane. Their modules are loaded with the first request, not with the plane. */
class PlaneClients {
  readonly #address: PlaneAddress;
  readonly #opened: { close(): void }[] = [];
  #kinds: KindFinder | undefined;
  #closed = false;

  constructor(address: PlaneAddress) {
    this.#address = address;
  }

  /** Returns a client with a token, which connects with its first request. */
  of(token: string): PlaneClient {
    let openedClient: Promise<PlaneClient> | undefined;
    const client = () => {
      openedClient ??= this.#open(token);
      return openedClient;
    };
    return {
      request: async (request) => (await client()).request(request),
      get: async (reference) => (await client()).get(reference),
      list: async (reference) => (await client()).list(reference),
      create: async (object) => (await client()).create(object),
      replace: async (object) => (await client()).replace(object),
      delete: async (reference) => (await client()).delete(reference),
      apply: async (...sources) => (await client()).apply(...sources),
    };
  }

  /** Applies manifests that were already read. */
  async install(client: PlaneClient, manifests: readonly Manifest[]): Promise<ManifestObject[]> {
    const { installManifests } = await import('./install.ts');
    const { dialect, webhooks } = this.#address;
    const kinds = await this.#finder();
    const redirect =
      webhooks === undefined
        ? (object: ManifestObject) => object
        : (await import('./webhooks.ts')).webhookRedirect(webhooks, dialect);
    return installManifests(client, manifests, { dialect, kinds, redirect });
  }

  /** Ends all connections. */
  close(): void {
    this.#closed = true;
    this.#kinds?.close();
    for (const client of this.#opened.splice(0)) client.close();
  }

  async #open(token: string): Promise<PlaneClient> {
    const { createPlaneClient } = await import('./plane-client.ts');
    const install = async (client: PlaneClient, sources: readonly ManifestSource[]) => {
      const { readSources } = await import('./sources.ts');
      return this.install(client, await readSources(sources));
    };
    const config = this.#config(token);
    const client = createPlaneClient({ config, kinds: await this.#finder(), install });
    if (this.#closed) client.close();
    else this.#opened.push(client);
    return client;
  }

  async #finder(): Promise<KindFinder> {
    const { KindFinder } = await import('./plane-client.ts');
    const { ownToken, catalogue } = this.#address;
    this.#kinds ??= new KindFinder(this.#config(ownToken), catalogue);
    return this.#kinds;
  }

  #config(token: string) {
    const { url: server, caPem } = this.#address;
    return { server, ...(caPem === '' ? {} : { caPem }), token: () => token };
  }
}

const tokenBytes = 32;

/** The users that tests add to a running plane. */
class PlaneUsers {
  readonly #byToken = new Map<string, UserInfo>();
  readonly #tokens = new Map<string, string>();
  readonly authenticator: Authenticator = {
    name: 'plane-users',
    authenticate: (exchange) => {
      const token = this.#byToken.size === 0 ? undefined : bearerToken(exchange);
      return token === undefined ? undefined : this.#byToken.get(token);
    },
  };

  /** Returns the user's random token, which stays the same when the groups change. */
  add(name: string, groups: readonly string[]): string {
    checkUser(name, groups);
    const token = this.#tokens.get(name) ?? randomBytes(tokenBytes).toString('base64url');
    this.#tokens.set(name, token);
    this.#byToken.set(token, { name, uid: '', groups: [...groups], extra: {} });
    return token;
  }
}

/** File systems limit names to 255 bytes, and the temporary name of a new file is longer. */
const fileNameLengthMax = 200;

function fileNameOf(user: string): string {
  const encoded = encodeURIComponent(user);
  if (encoded.length <= fileNameLengthMax) return encoded;
  return createHash('sha256').update(user).digest('hex');
}

/** Writes the kubeconfig of a user and returns its path. */
function writeUserKubeconfig(options: {
  readonly directory: string;
  readonly name: string;
  readonly token: string;
  readonly url: string;
  readonly caPem: string;
}): string {
  const { directory, name, token, url, caPem } = options;
  const folder = join(directory, 'users');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${fileNameOf(name)}.kubeconfig`);
  const authority = caPem === '' ? {} : { caPem };
  writeAdminKubeconfig({ path, server: url, ...authority, credential: { token }, context: name });
  return path;
}

/** Number of requests that a plane records by default. */
const recordedMaxDefault = 10_000;

/** `Symbol.asyncDispose`, or its substitute in contexts that lack it, such as those of jest. */
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

const ownClients = new WeakMap<ControlPlane, PlaneClient>();

/** Returns the plane's own client, whose requests are neither recorded nor affected by faults. */
export function ownClientOf(plane: ControlPlane): PlaneClient {
  const client = ownClients.get(plane);
  if (client === undefined)
    throw new Error('the argument is not a running control plane of this process');
  return client;
}

/**
 * Starts a control plane for a test or a program (CLIENT-3, PLANE-2). It stores its objects in
 * memory, listens on a free port of the loopback interface, has its own CA and administrator, and
 * shares nothing with other planes of the process. Resolves when the plane is ready and its
 * definitions, webhooks, and objects are installed. Rejects with TypeError for an unknown option or
 * one of the wrong type, with FlagError for an invalid flag, and with ManifestError, which names
 * file and line, for a manifest that cannot be read or installed; then nothing is left running.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  checkMembers('options of a plane', options);
  if (options.webhooks !== undefined) checkMembers('options of webhooks', options.webhooks);
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-'));
  const discard = () => rmSync(directory, { recursive: true, force: true });
  try {
    return await startIn(directory, { options, discard });
  } catch (error) {
    discard();
    throw error;
  }
}

async function startIn(
  directory: string,
  { options, discard }: { options: ControlPlaneOptions; discard: () => void },
): Promise<ControlPlane> {
  const config = configOf(directory, options.flags ?? []);
  const dialect = dialectOf(config.dialect);
  const clock = new MovableClock();
  const { seed, recordedMax = recordedMaxDefault } = options;
  const tap = new PlaneTap({ clock, recordedMax, seed });
  const manifests = await readManifests(options, dialect);
  const webhooks =
    options.webhooks === undefined
      ? undefined
      : await (await import('./webhooks.ts')).openWebhookEndpoint(options.webhooks, {
          directory,
          clock,
        });
  // The directory is removed with the plane.
  const files = 'remade';
  const token = ensureAdminToken(directory, { atStart: files });
  const users = new PlaneUsers();
  const snapshots = new Snapshots(dialect);
  const server = await startServer({
    ...config,
    authentication: { ...config.authentication, adminToken: token },
    embedding: {
      authenticators: [users.authenticator],
      connectionClock: systemClock,
      onStore: snapshots.onStore,
      onCatalogue: tap.openedCatalogue,
      tap,
      files,
    },
    clock,
    logger: silentLogger,
  });
  snapshots.waitFor(server.settled);
  const { url, caPem = '' } = server;
  const ownToken = users.add(planeUser, ['system:masters']);
  const { catalogue } = tap;
  const clients = new PlaneClients({ url, caPem, ownToken, dialect, webhooks, catalogue });
  const plane = planeOf({
    server,
    directory,
    token,
    users,
    clients,
    snapshots,
    webhooks,
    tap,
    clock,
    discard,
  });
  ownClients.set(plane, clients.of(ownToken));
  try {
    await server.ready;
    if (manifests.length > 0) await clients.install(plane.client, manifests);
  } catch (error) {
    await plane.stop();
    throw error;
  }
  return plane;
}

function configOf(
  directory: string,
  flags: readonly string[],
): Omit<ServerConfig, 'clock' | 'logger'> {
  const outcome = readOptions([
    '--bind-address=127.0.0.1',
    '--secure-port=0',
    ...(flags.some((flag) => flag.startsWith('--etcd-servers'))
      ? []
      : ['--storage-backend=memory']),
    `--data-dir=${directory}`,
    `--cert-dir=${join(directory, 'certificates')}`,
    ...flags,
  ]);
  if (outcome.kind !== 'options') throw new FlagError('a control plane takes flags of serve only');
  return outcome.options.config;
}

/** Reads everything to install before anything starts: definitions, webhooks, objects. */
async function readManifests(
  options: ControlPlaneOptions,
  dialect: Dialect,
): Promise<readonly Manifest[]> {
  const { crds = [], objects = [] } = options;
  const { configurations = [] } = options.webhooks ?? {};
  if (crds.length + objects.length + configurations.length === 0) return [];
  const { readDefinitions, readSources } = await import('./sources.ts');
  return [
    ...(await readDefinitions(crds, dialect)),
    ...(await readSources(configurations)),
    ...(await readSources(objects)),
  ];
}

function planeOf(parts: {
  readonly server: RunningServer;
  readonly directory: string;
  readonly token: string;
  readonly users: PlaneUsers;
  readonly clients: PlaneClients;
  readonly snapshots: Snapshots;
  readonly tap: PlaneTap;
  readonly clock: MovableClock;
  readonly webhooks: WebhookEndpoint | undefined;
  readonly discard: () => void;
}): ControlPlane {
  const { server, directory, token, users, clients, snapshots, webhooks, tap, clock, discard } =
    parts;
  const { url, caPem = '' } = server;
  const kubeconfig = join(directory, 'kubeconfig');
  writeAdminKubeconfig({
    path: kubeconfig,
    server: url,
    ...(caPem === '' ? {} : { caPem }),
    credential: { token },
    context: 'wheelhouse',
  });
  const client = clients.of(token);
  let isStopped = false;
  const stop = async (): Promise<void> => {
    isStopped = true;
    clients.close();
    await server.stop();
    // Programs may keep the plane, whose objects and kinds need not stay in memory.
    snapshots.close();
    tap.close();
    discard();
  };
  const user = (name: string, groups: readonly string[] = []): PlaneUser => {
    if (isStopped) throw new Error('the control plane has stopped');
    const userToken = users.add(name, groups);
    return {
      name,
      groups,
      token: userToken,
      kubeconfig: writeUserKubeconfig({ directory, name, token: userToken, url, caPem }),
      client: clients.of(userToken),
    };
  };
  const plane: Omit<ControlPlane, typeof asyncDispose> = {
    url,
    caPem,
    token,
    kubeconfig,
    client,
    webhooks,
    apply: client.apply,
    user,
    snapshot: snapshots.take,
    restore: snapshots.restore,
    clock: { now: () => clock.now(), advance: (byMs) => clock.advance(byMs) },
    faults: tap.faults(),
    recorded: (filter) => tap.recorder.list(filter),
    forgetRecorded: () => tap.recorder.clear(),
    stop,
  };
  return { ...plane, [asyncDispose]: stop } as ControlPlane;
}

/** The controllers' first writes are complete after this many milliseconds without a write. */
const quietMs = 30;
const quietWithinMs = 1000;
const pollMs = 5;

/** Takes snapshots of a plane's store and returns to them (PLANE-3). */
class Snapshots {
  readonly #checkpoints = new WeakMap<PlaneSnapshot, Checkpoint>();
  /** Prefix of the keys that are restored last. */
  readonly #last: string;
  #store: CheckpointedStore | 'closed' | undefined;
  #quiet: Promise<void> | undefined;
  #settled: Promise<void> = Promise.resolve();

  constructor(dialect: Dialect) {
    // Definitions are removed after their objects, so that watchers see the removal of each object.
    this.#last = definitionsPrefix(dialect.group('apiextensions'));
  }

  readonly take = async (): Promise<PlaneSnapshot> => {
    const store = this.#open();
    // Otherwise each restore would undo the first writes of controllers, such as default accounts.
    this.#quiet ??= this.#settled.then(() => untilQuiet(store));
    await this.#quiet;
    const checkpoint = store.checkpoint();
    const snapshot = { resourceVersion: String(checkpoint.revision) };
    this.#checkpoints.set(snapshot, checkpoint);
    return snapshot;
  };

  readonly restore = async (snapshot: PlaneSnapshot): Promise<RestoredPlane> => {
    const store = this.#open();
    const checkpoint = this.#checkpoints.get(snapshot);
    if (checkpoint === undefined) throw new Error('the snapshot was not taken from this plane');
    const { revision, changes } = store.restore(checkpoint, { last: this.#last });
    return { resourceVersion: String(revision), changes };
  };

  /** Receives the plane's store, if it can return to earlier states. */
  readonly onStore = (store: CheckpointedStore): void => {
    this.#store = store;
  };

  /** Releases the store; later snapshots fail. */
  close(): void {
    this.#store = 'closed';
  }

  /** Delays snapshots until `settled` resolves. */
  waitFor(settled: Promise<void>): void {
    this.#settled = settled;
  }

  #open(): CheckpointedStore {
    if (this.#store === 'closed') throw new Error('the control plane has stopped');
    if (this.#store !== undefined) return this.#store;
    throw new Error('snapshots need a plane that keeps its objects in memory');
  }
}

/** Resolves when the store has not been written for a while, or after `quietWithinMs`. */
async function untilQuiet(store: CheckpointedStore): Promise<void> {
  const startMs = performance.now();
  let revision = await store.currentRevision();
  let sinceMs = startMs;
  while (performance.now() < Math.min(sinceMs + quietMs, startMs + quietWithinMs)) {
    await pause(programClock, { ms: pollMs });
    const current = await store.currentRevision();
    if (current === revision) continue;
    revision = current;
    sinceMs = Math.max(performance.now(), sinceMs);
  }
}
