import {
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  notSupported,
  parseIpAddress,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import type { Features } from '../../features/features.ts';
import type { IngressLoadBalancerIngress } from '../../gen/types/networking/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps } from '../../rules/checks.ts';
import { objectsAt } from '../../rules/fill.ts';
import { validateIp } from '../addresses.ts';
import type { Service } from './spec.ts';

/** Validates `status.loadBalancer` of a Service; only the type LoadBalancer may have addresses. */
export function* validateServiceStatus(
  service: Service,
  features: Features,
): Generator<void, FieldError[]> {
  const path = 'status.loadBalancer.ingress';
  const ingress = objectsAt(service, 'status', 'loadBalancer', 'ingress');
  const isBalanced = service.spec.type === 'LoadBalancer';
  const isAllowed = isBalanced || features.enabled('AllowServiceLBStatusOnNonLB');
  if (ingress.length > 0 && !isAllowed) {
    return [forbiddenField(path, "may only be used when `spec.type` is 'LoadBalancer'")];
  }
  return yield* flatMapSteps(ingress, (entry, index) =>
    validateIngress(entry, `${path}[${index}]`, features),
  );
}

function validateIngress(ingress: JsonObject, path: string, features: Features): FieldError[] {
  const ip = textAt(ingress, 'ip');
  const errors = ip === '' ? [] : validateIp(`${path}.ip`, ip);
  const mode = ingress['ipMode'];
  if (mode === undefined) {
    if (ip !== '' && features.enabled('LoadBalancerIPMode')) {
      errors.push(required(`${path}.ipMode`, 'must be specified when `ip` is set'));
    }
  } else if (ip === '') {
    errors.push(forbiddenField(`${path}.ipMode`, 'may not be specified when `ip` is not set'));
  } else if (mode !== 'VIP' && mode !== 'Proxy') {
    errors.push(notSupported(`${path}.ipMode`, mode, ['Proxy', 'VIP']));
  }
  return [...errors, ...validateBalancerHost(ingress, path)];
}

/** The distinct addresses of a load balancer, sorted, for the table of a Service or an Ingress. */
export function balancerAddresses(
  ingress: readonly Stored<IngressLoadBalancerIngress>[] = [],
): readonly string[] {
  const all = ingress.map(({ ip = '', hostname = '' }) => ip || hostname);
  return [...new Set(all.filter((address) => address !== ''))].sort();
}

/** Validates the hostname of a load balancer, in a Service or an Ingress. */
export function validateBalancerHost(
  ingress: Stored<IngressLoadBalancerIngress>,
  path: string,
): FieldError[] {
  const host = ingress.hostname ?? '';
  if (host === '') return [];
  const field = `${path}.hostname`;
  const errors = ruleErrors(field, host, dnsSubdomain);
  if (parseIpAddress(host) === undefined) return errors;
  return [...errors, invalid(field, host, 'must be a DNS name, not an IP address')];
}
