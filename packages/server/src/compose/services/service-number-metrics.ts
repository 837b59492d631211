import type { NumberMeter } from '@wheelhouse/kinds';
import type { MetricRegistry } from '@wheelhouse/machinery';
import type { ServiceNumbers } from './service-numbers.ts';

/** Shows how many addresses and ports Services have, counted when somebody asks (OPS-1). */
export function serviceNumbersLook(
  registry: MetricRegistry,
  services: Pick<ServiceNumbers, 'usage'>,
): () => Promise<void> {
  const gauge = (name: string, help: string, labels: readonly string[]) =>
    registry.gauge({ name: `kube_apiserver_${name}`, help, stability: 'ALPHA', labels });
  const addresses = {
    allocated: gauge('clusterip_allocator_allocated_ips', 'Addresses that Services have.', [
      'cidr',
    ]),
    free: gauge('clusterip_allocator_available_ips', 'Addresses that nobody has.', ['cidr']),
  };
  const ports = {
    allocated: gauge(
      'nodeport_allocator_allocated_ports',
      'Ports of nodes that Services have.',
      [],
    ),
    free: gauge('nodeport_allocator_available_ports', 'Ports of nodes that nobody has.', []),
  };
  return async () => {
    // While Services cannot be read, the gauges keep their last values.
    const usage = await services.usage().catch(() => undefined);
    if (usage === undefined) return;
    for (const { text, allocated, free } of usage.addresses) {
      addresses.allocated.of(text).set(allocated);
      addresses.free.of(text).set(free);
    }
    ports.allocated.of().set(usage.nodePorts.allocated);
    ports.free.of().set(usage.nodePorts.free);
  };
}

/** Counts allocations of addresses and ports to Services, and failed ones (OPS-1). */
export function createNumberMeter(registry: MetricRegistry): NumberMeter {
  const counter = (name: string, help: string, labels: readonly string[]) =>
    registry.counter({ name: `kube_apiserver_${name}`, help, stability: 'ALPHA', labels });
  const families = (allocator: string, what: string, labels: readonly string[]) => ({
    taken: counter(`${allocator}_allocation_total`, `${what} taken for Services.`, labels),
    failed: counter(
      `${allocator}_allocation_errors_total`,
      `${what} that could not be taken for Services.`,
      labels,
    ),
  });
  const addresses = families('clusterip_allocator', 'Addresses', ['cidr', 'scope']);
  const ports = families('nodeport_allocator', 'Ports of nodes', ['scope']);
  return {
    address: (range, scope, result) => addresses[result].of(range, scope).add(1),
    port: (scope, result) => ports[result].of(scope).add(1),
  };
}
