import {
  appendAll,
  breaks,
  duplicate,
  type FieldError,
  invalid,
  type JsonObject,
  portName,
  required,
} from '@wheelhouse/machinery';
import { numberAt, textAt } from '../../cells.ts';
import type { ContainerPort, PodSpec } from '../../gen/types/core/v1.ts';
import { objectsAt } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';
import { choice, isTrue, portNumber } from '../fields.ts';
import type { PodRules } from '../rules.ts';

const protocols = ['SCTP', 'TCP', 'UDP'];

/** Validates the ports of one container. */
export function validatePorts(ports: readonly Stored<ContainerPort>[], path: string): FieldError[] {
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const field = `${path}[${index}]`;
    const errors = validatePortName(port.name ?? '', { field: `${field}.name`, names });
    const number = port.containerPort ?? 0;
    if (number === 0) errors.push(required(`${field}.containerPort`));
    else appendAll(errors, portNumber(`${field}.containerPort`, number));
    const hostPort = port.hostPort ?? 0;
    if (hostPort !== 0) appendAll(errors, portNumber(`${field}.hostPort`, hostPort));
    appendAll(errors, choice(port, field, 'protocol', protocols));
    return errors;
  });
}

function validatePortName(
  name: string,
  { field, names }: { field: string; names: Set<string> },
): FieldError[] {
  if (name === '') return [];
  const errors = breaks(field, name, portName);
  if (errors.length > 0) return errors;
  if (names.has(name)) return [duplicate(field, name)];
  names.add(name);
  return [];
}

/** Rejects two containers that use the same host port at the same address. */
export function hostPortConflicts(containers: readonly JsonObject[], path: string): FieldError[] {
  const taken = new Set<string>();
  return containers.flatMap((container, at) =>
    objectsAt(container, 'ports').flatMap((port, index) => {
      const hostPort = numberAt(port, 'hostPort');
      if (hostPort === 0) return [];
      const claim = `${textAt(port, 'protocol')}/${textAt(port, 'hostIP')}/${hostPort}`;
      if (taken.has(claim)) return [duplicate(`${path}[${at}].ports[${index}].hostPort`, claim)];
      taken.add(claim);
      return [];
    }),
  );
}

/** On the host's network, ports of containers are ports of the host. */
export function validateHostNetworkPorts(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): FieldError[] {
  if (!isTrue(spec, 'hostNetwork')) return [];
  return (spec.containers ?? []).flatMap((container, at) =>
    (container.ports ?? []).flatMap((port, index) => {
      const hostPort = port.hostPort ?? 0;
      const isJudged = rules.pod !== undefined || hostPort !== 0;
      if (!isJudged || hostPort === (port.containerPort ?? 0)) return [];
      const detail = 'must match `containerPort` when `hostNetwork` is true';
      return [invalid(`${path}.containers[${at}].ports[${index}].hostPort`, hostPort, detail)];
    }),
  );
}
