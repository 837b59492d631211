import {
  appendAll,
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import type { ContainerResizePolicy } from '../../gen/types/core/v1.ts';
import type { Stored } from '../../stored.ts';

const resizable = ['cpu', 'memory'];
const restartPolicies = ['NotRequired', 'RestartContainer'];

/** The `resizePolicy` of a container: what a change of a resource does to it. */
export function validateResizePolicy(
  policies: readonly Stored<ContainerResizePolicy>[],
  path: string,
  podPolicy: string,
): FieldError[] {
  const seen = new Set<string>();
  return policies.flatMap((policy, index) => {
    const [name, restart] = [policy.resourceName ?? '', policy.restartPolicy ?? ''];
    const errors = seen.has(name) ? [duplicate(`${path}[${index}]`, name)] : [];
    seen.add(name);
    appendAll(errors, oneOf(path, name, resizable));
    appendAll(errors, oneOf(path, restart, restartPolicies));
    if (podPolicy === 'Never' && restart !== 'NotRequired') {
      const detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
      errors.push(invalid(path, restart, detail));
    }
    return errors;
  });
}

function oneOf(path: string, value: string, supported: readonly string[]): FieldError[] {
  if (value === '') return [required(path)];
  return supported.includes(value) ? [] : [notSupported(path, value, [...supported])];
}
