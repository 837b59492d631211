import { objectAt, type ResourceDef, type Stored } from '@wheelhouse/kinds';
import type { Lease } from '@wheelhouse/kinds/types/coordination/v1';
import {
  type ApiObject,
  background,
  type Dialect,
  formatMicroTime,
  randomUuid,
  Slices,
  type Timer,
} from '@wheelhouse/machinery';
import { serverIdentity } from '../../observe/server-identity.ts';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import { type ControllerTools, listEntries, removeUnchanged } from '../tools.ts';

interface IdentityLeaseTools extends ControllerTools {
  readonly leases: ResourceDef;
  readonly dialect: Dialect;
  readonly hostname: string;
}

const durationSeconds = 3600;
const renewPeriodMs = 10_000;
const collectPeriodMs = 3600 * 1000;

/**
 * Renews the Lease that announces a server (PLANE-1), and removes expired Leases of other servers.
 * Servers on one host share a Lease, which expires an hour after its last renewal.
 */
export class IdentityLease {
  readonly #tools: IdentityLeaseTools;
  readonly #name: string;
  readonly #holder: string;
  #timers: readonly Timer[] = [];
  #isClosed = false;
  #working: Promise<unknown> = Promise.resolve();

  constructor(tools: IdentityLeaseTools) {
    this.#tools = tools;
    this.#name = serverIdentity(tools.hostname, tools.dialect.serverProgram);
    this.#holder = `${this.#name}_${randomUuid()}`;
  }

  /** Creates the Lease, or takes over the Lease of a previous server. Rejects on failure. */
  async renew(): Promise<void> {
    const { caches, leases, writer, dialect } = this.#tools;
    const namespace = dialect.systemNamespace('system');
    const name = this.#name;
    const at = { def: leases, namespace, name };
    const entry = await caches.of(leases).get(objectKey(namespace, name), undefined);
    if (entry !== undefined) return writer.change(at, (current) => this.#renewed(current));
    const { apiVersion } = leases.storage;
    const object = { apiVersion, kind: leases.kind, metadata: { name, namespace } };
    await writer.create(at, this.#renewed(object));
  }

  /** Renews the Lease and collects expired ones until `close`. */
  start(): void {
    this.#repeat(renewPeriodMs, () => this.renew());
    this.#repeat(collectPeriodMs, () => this.#collect());
    this.#run(() => this.#collect());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) timer.stop();
    await this.#working;
  }

  #repeat(periodMs: number, work: () => Promise<void>): void {
    const timer = this.#tools.clock.every(periodMs, () => this.#run(work));
    this.#timers = [...this.#timers, timer];
  }

  #run(work: () => Promise<void>): void {
    if (this.#isClosed) return;
    const { logger } = this.#tools;
    const run = this.#working.then(work).catch((error: unknown) => {
      if (!this.#isClosed)
        logger.warn('cannot maintain the identity leases', { error: String(error) });
    });
    this.#working = run;
    background({ where: 'controller' }, run);
  }

  #renewed(lease: ApiObject): ApiObject {
    const { dialect, clock, hostname } = this.#tools;
    const labels = {
      ...lease.metadata.labels,
      [identityLabel(dialect)]: dialect.serverProgram,
      [dialect.label('hostname')]: hostname,
    };
    const spec = {
      ...objectAt(lease, 'spec'),
      holderIdentity: this.#holder,
      leaseDurationSeconds: durationSeconds,
      renewTime: formatMicroTime(clock.now()),
    };
    return { ...lease, metadata: { ...lease.metadata, labels }, spec };
  }

  async #collect(): Promise<void> {
    const { leases, caches, dialect, clock } = this.#tools;
    const namespace = dialect.systemNamespace('system');
    const own = dialect.serverProgram;
    const slices = new Slices(clock);
    for (const entry of await listEntries(caches, { def: leases, namespace })) {
      if (slices.over) await slices.pause();
      if (entry.index.labels[identityLabel(dialect)] !== own) continue;
      if (!isExpired(await decodedInSlices(entry, clock), clock.now())) continue;
      await removeUnchanged(this.#tools, { def: leases, entry });
    }
  }
}

const identityLabel = (dialect: Dialect) => dialect.label('identity', 'apiserver');

/** A Lease without a renewal time or duration counts as expired. */
function isExpired(lease: Stored<Lease>, nowMs: number): boolean {
  const spec = lease.spec;
  const renewedMs = Date.parse(String(spec?.renewTime ?? ''));
  const seconds = spec?.leaseDurationSeconds;
  if (Number.isNaN(renewedMs) || typeof seconds !== 'number') return true;
  return renewedMs + seconds * 1000 < nowMs;
}
