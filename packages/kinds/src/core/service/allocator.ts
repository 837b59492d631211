import {
  type FieldError,
  formatIpAddress,
  internalError,
  invalid,
  invalidGo,
  invalidObject,
  parseIpAddress,
  type StatusError,
} from '@wheelhouse/machinery';
import type { Strategy } from '../../resource-def.ts';
import {
  determineFamilies,
  type Family,
  keepsDualStack,
  type ServedFamilies,
  shownIps,
} from './cluster-ips.ts';
import type { ServiceLedger } from './ledger.ts';
import { type AddressPool, pickFree, portKey, type ServiceRanges } from './pools.ts';
import { type AddressRecords, allocateClaimed, type NumberClaims } from './shared-numbers.ts';
import {
  allocatesNodePorts,
  asService,
  isExternalName,
  keepAllocated,
  mayHaveNodePorts,
  needsHealthCheck,
  noAddress,
  nodePortsOf,
  type ServicePort,
  type ServiceSpec,
  syncClusterIps,
} from './spec.ts';

/** Whether a Service requests a specific number. */
type NumberScope = 'static' | 'dynamic';

/** Counts allocations, except those of dry runs, which allocate nothing. */
export interface NumberMeter {
  /** `range` is the text of the range from which the address is taken. */
  address(range: string, scope: NumberScope, result: 'taken' | 'failed'): void;
  port(scope: NumberScope, result: 'taken' | 'failed'): void;
}

/** kube-apiserver's reasons that a number is not available. */
const reasons = {
  ip: 'provided IP is already allocated',
  port: 'provided port is already allocated',
  full: 'range is full',
  elsewhere: 'the provided network does not match the current range',
  unready: 'allocator not ready',
} as const;

/** The first node port that a dry run reports if the Service requests none. */
const firstDryPort = 32769;

/**
 * Returns a Service's `allocate`, which allocates addresses and ports, determines their families,
 * and keeps earlier allocations. It throws a 422 for a requested number that is not available, and
 * a 500 if a range is full.
 */
export function allocateService(options: {
  readonly ranges: ServiceRanges;
  readonly ledger: ServiceLedger;
  /** Set when several servers allocate from the same ranges. */
  readonly claims?: () => NumberClaims | undefined;
  /** Set when the ranges are API objects instead of flags. */
  readonly records?: AddressRecords | undefined;
  readonly meter?: (() => NumberMeter | undefined) | undefined;
}): NonNullable<Strategy['allocate']> {
  const { ranges, ledger, records } = options;
  return async (context, object, old) => {
    if (context.subresource !== '') return { settle: () => {} };
    const name = object.metadata.name ?? '';
    const before = old === undefined ? undefined : asService(old).spec;
    const choose = async (): Promise<readonly string[]> => {
      await ledger.caughtUp();
      await records?.caughtUp();
      const { dryRun: isDry } = context;
      const meter = isDry ? undefined : options.meter?.();
      const attempt = new AllocationAttempt({ ranges, ledger, records, name, isDry, meter });
      const { spec } = asService(object);
      try {
        if (before !== undefined) keepAllocated(spec, before);
        syncClusterIps(spec, before);
        attempt.run(spec, before);
      } catch (error) {
        ledger.settle(attempt.keys, { type: 'refused' });
        throw error;
      }
      return attempt.keys;
    };
    const claims = options.claims?.();
    if (claims !== undefined) return allocateClaimed({ object, ledger, claims, choose });
    const keys = await choose();
    return { settle: (outcome) => ledger.settle(keys, outcome) };
  };
}

/** The numbers taken for one write, all in one turn of the event loop: see `ServiceLedger`. */
class AllocationAttempt {
  /** The numbers taken, by the ledger's names. */
  readonly keys: string[] = [];
  readonly #ranges: ServiceRanges;
  readonly #ledger: ServiceLedger;
  readonly #records: AddressRecords | undefined;
  readonly #name: string;
  readonly #isDry: boolean;
  readonly #meter: NumberMeter | undefined;
  readonly #dryPorts = new Set<number>();
  /** 0 if the dry run has taken no port. */
  #highestDryPort = 0;

  constructor(options: {
    ranges: ServiceRanges;
    ledger: ServiceLedger;
    records: AddressRecords | undefined;
    name: string;
    isDry: boolean;
    meter: NumberMeter | undefined;
  }) {
    this.#ranges = options.ranges;
    this.#ledger = options.ledger;
    this.#records = options.records;
    this.#name = options.name;
    this.#isDry = options.isDry;
    this.#meter = options.meter;
  }

  run(spec: ServiceSpec, old: ServiceSpec | undefined): void {
    const [first, ...others] = this.#ranges.addresses;
    const served: ServedFamilies = [first.family, ...others.map(({ family }) => family)];
    const errors = determineFamilies(spec, old, served);
    if (errors.length > 0) throw this.#invalid(errors);
    this.#allocateAddresses(spec, old);
    if (mayHaveNodePorts(spec)) {
      if (old === undefined) this.#allocatePorts(spec);
      else this.#allocateNewPorts(spec, old);
    }
    this.#allocateHealthCheckPort(spec, old);
  }

  #allocateAddresses(spec: ServiceSpec, old: ServiceSpec | undefined): void {
    const { clusterIPs = [] } = spec;
    if (isExternalName(spec)) return;
    // Has no address yet: new, formerly ExternalName, or older than this server's ranges.
    const isFresh = old === undefined || isExternalName(old) || clusterIPs.length === 0;
    if (isFresh) {
      if (clusterIPs[0] !== noAddress) this.#allocateFrom(spec, 0);
      return;
    }
    if (keepsDualStack(spec, old) || old.clusterIPs?.[0] === noAddress) return;
    const isUpgrade = old.ipFamilies?.length === 1 && spec.ipFamilies?.length === 2;
    if (isUpgrade) this.#allocateFrom(spec, 1);
  }

  /** Allocates the requested address, or any free one, for each family from an index on. */
  #allocateFrom(spec: ServiceSpec, from: number): void {
    const { ipFamilies = [], clusterIPs: ips = [] } = spec;
    const clusterIPs = [...ips];
    for (const [index, family] of ipFamilies.entries()) {
      if (index < from) continue;
      const pools = this.#pools(family as Family);
      if (pools === undefined) continue;
      const requestedIp = ips[index] ?? '';
      clusterIPs[index] =
        requestedIp === '' ? this.#anyAddress(pools) : this.#namedAddress(pools, requestedIp, spec);
    }
    spec.clusterIPs = clusterIPs;
    const [first] = clusterIPs;
    if (first !== undefined) spec.clusterIP = first;
  }

  /** The address ranges of a family; undefined if this server does not serve it. */
  #pools(family: Family): readonly AddressPool[] | undefined {
    const own = this.#ranges.addresses.filter((address) => address.family === family);
    if (own.length === 0) return undefined;
    return this.#records?.pools(family) ?? own;
  }

  #isHeld(key: string): boolean {
    return this.#ledger.isHeld(key) || this.#records?.isRecorded(key) === true;
  }

  #anyAddress(pools: readonly AddressPool[]): string {
    const [first] = pools;
    if (this.#isDry && first !== undefined) return first.dryAddress;
    for (const pool of pools) {
      const index = pickFree(pool, (key) => this.#isHeld(key));
      this.#meter?.address(pool.text, 'dynamic', index === undefined ? 'failed' : 'taken');
      if (index === undefined) continue;
      this.#take(pool.keyOf(index));
      return pool.addressOf(index);
    }
    const why = this.#isDry ? reasons.unready : reasons.full;
    throw internalError(`failed to allocate a serviceIP: ${why}`);
  }

  #namedAddress(pools: readonly AddressPool[], ip: string, spec: ServiceSpec): string {
    const pool = pools.find((candidate) => candidate.keyOfAddress(ip) !== undefined);
    const key = pool?.keyOfAddress(ip);
    const refuse = (why: string) => {
      const detail = `failed to allocate IP ${ip}: ${why}`;
      return this.#invalid([invalidGo('spec.clusterIPs', () => shownIps(spec), detail)]);
    };
    if (pool === undefined || key === undefined) {
      if (this.#records !== undefined) throw refuse(reasons.elsewhere);
      const where = `The range of valid IPs is ${pools.map(({ text }) => text).join()}`;
      const address = parseIpAddress(ip);
      const shown = address === undefined ? ip : formatIpAddress(address);
      throw refuse(`the provided IP (${shown}) is not in the valid range. ${where}`);
    }
    if (this.#isDry) return ip;
    const isHeld = this.#isHeld(key);
    this.#meter?.address(pool.text, 'static', isHeld ? 'failed' : 'taken');
    if (isHeld) throw refuse(reasons.ip);
    this.#take(key);
    return ip;
  }

  /** Allocates the ports of a new Service; entries with the same port number share a node port. */
  #allocatePorts(spec: ServiceSpec): void {
    const { ports = [] } = spec;
    const allocatedPorts = new Map<number, number>();
    const requestedPorts = requestedNodePorts(ports);
    for (const [index, port] of ports.entries()) {
      const number = port.port ?? 0;
      const requestedPort = port.nodePort ?? 0;
      if (requestedPort === 0 && !allocatesNodePorts(spec)) continue;
      const shared = allocatedPorts.get(number);
      if (shared === undefined) {
        const requested = requestedPorts.get(number);
        const nodePort =
          requested === undefined ? this.#anyPort() : this.#namedPort(requested, index);
        port.nodePort = nodePort;
        allocatedPorts.set(number, nodePort);
      } else if (requestedPort === 0) port.nodePort = shared;
      else if (requestedPort !== shared) this.#namedPort(requestedPort, index);
    }
  }

  /** Allocates the ports that an update adds. */
  #allocateNewPorts(spec: ServiceSpec, old: ServiceSpec): void {
    const oldPorts = new Set(nodePortsOf(old));
    const newPorts = new Set<number>();
    for (const [index, port] of (spec.ports ?? []).entries()) {
      const requestedPort = port.nodePort ?? 0;
      if (requestedPort === 0) {
        if (allocatesNodePorts(spec)) port.nodePort = this.#anyPort();
      } else if (!oldPorts.has(requestedPort) && !newPorts.has(requestedPort)) {
        newPorts.add(this.#namedPort(requestedPort, index));
      }
    }
  }

  #namedPort(port: number, index: number): number {
    const why = this.#takePort(port);
    if (why === undefined) return port;
    throw this.#invalid([invalid(`spec.ports[${index}].nodePort`, port, why)]);
  }

  /** @param what the port's name in kube-apiserver's error */
  #anyPort(what = 'nodePort'): number {
    if (this.#isDry) return this.#anyDryPort();
    const index = pickFree(this.#ranges.nodePorts, (key) => this.#ledger.isHeld(key));
    this.#meter?.port('dynamic', index === undefined ? 'failed' : 'taken');
    if (index === undefined) throw internalError(`failed to allocate a ${what}: ${reasons.full}`);
    this.#take(this.#ranges.nodePorts.keyOf(index));
    return this.#ranges.nodePorts.first + index;
  }

  #anyDryPort(): number {
    const port = this.#highestDryPort === 0 ? firstDryPort : this.#highestDryPort + 1;
    this.#takeDryPort(port);
    return port;
  }

  #takeDryPort(port: number): void {
    this.#dryPorts.add(port);
    this.#highestDryPort = Math.max(this.#highestDryPort, port);
  }

  /** Takes a port by number; returns the reason if it is not available. */
  #takePort(port: number): string | undefined {
    const key = this.#ranges.nodePorts.keyOfPort(port);
    if (this.#isDry) {
      if (this.#ledger.isHeld(portKey(port)) || this.#dryPorts.has(port)) return reasons.port;
      this.#takeDryPort(port);
      return undefined;
    }
    const isFree = key !== undefined && !this.#ledger.isHeld(key);
    this.#meter?.port('static', isFree ? 'taken' : 'failed');
    if (key === undefined) {
      const where = `The range of valid ports is ${this.#ranges.nodePorts.text}`;
      return `provided port is not in the valid range. ${where}`;
    }
    if (!isFree) return reasons.port;
    this.#take(key);
    return undefined;
  }

  /** Allocates the port on which nodes report to a load balancer whether they run the pods. */
  #allocateHealthCheckPort(spec: ServiceSpec, old: ServiceSpec | undefined): void {
    if (!needsHealthCheck(spec) || (old !== undefined && needsHealthCheck(old))) return;
    const { healthCheckNodePort: requestedPort = 0 } = spec;
    if (requestedPort === 0) {
      spec.healthCheckNodePort = this.#anyPort('HealthCheck NodePort 0');
      return;
    }
    const why = this.#takePort(requestedPort);
    if (why === undefined) return;
    throw internalError(
      `failed to allocate requested HealthCheck NodePort ${requestedPort}: ${why}`,
    );
  }

  #take(key: string): void {
    this.#ledger.take(key);
    this.keys.push(key);
  }

  #invalid(errors: readonly FieldError[]): StatusError {
    return invalidObject({ group: '', kind: 'Service' }, this.#name, errors);
  }
}

/** The first requested node port of each port number. */
function requestedNodePorts(ports: readonly ServicePort[]): ReadonlyMap<number, number> {
  const requested = new Map<number, number>();
  for (const { port = 0, nodePort = 0 } of ports) {
    if (nodePort !== 0 && !requested.has(port)) requested.set(port, nodePort);
  }
  return requested;
}
