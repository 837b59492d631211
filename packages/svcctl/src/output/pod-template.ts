import { isObject, type JsonObject, member } from '@wheelhouse/machinery';
import { listAt, objectAt, textAt } from '../objects.ts';
import { titleOf } from './description.ts';

/** Describes a template of Pods in kubectl's lines, which are indented by blanks and tabs. */
export function podTemplateText(template: JsonObject): string {
  const spec = objectAt(template, 'spec');
  const annotations = objectAt(template, 'metadata', 'annotations');
  const account = textAt(spec, 'serviceAccountName');
  const priority = textAt(spec, 'priorityClassName');
  const initial = listAt(spec, 'initContainers');
  const lines = [
    'Pod Template:',
    ...pairs('Labels', objectAt(template, 'metadata', 'labels'), '='),
    ...(Object.keys(annotations).length === 0 ? [] : pairs('Annotations', annotations, ': ')),
    ...(account === '' ? [] : [`  Service Account:\t${account}`]),
    ...(initial.length === 0 ? [] : containers('Init Containers', initial)),
    ...containers('Containers', listAt(spec, 'containers')),
    ...volumes(listAt(spec, 'volumes')),
    ...(priority === '' ? [] : [`  Priority Class Name:\t${priority}`]),
    ...pairs('Node-Selectors', objectAt(spec, 'nodeSelector'), '='),
    ...listed('Tolerations', listAt(spec, 'tolerations').map(tolerationText).sort()),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function listed(title: string, values: readonly string[]): string[] {
  if (values.length === 0) return [`  ${title}:\t<none>`];
  return values.map((value, at) => (at === 0 ? `  ${title}:\t${value}` : `\t${value}`));
}

const pairs = (title: string, map: JsonObject, between: string): string[] =>
  listed(
    title,
    Object.keys(map)
      .sort()
      .map((key) => `${key}${between}${String(member(map, key))}`),
  );

function containers(title: string, list: readonly JsonObject[]): string[] {
  return [
    `  ${title}:${list.length === 0 ? ' <none>' : ''}`,
    ...list.flatMap((one) => [`   ${textAt(one, 'name')}:`, ...containerLines(one)]),
  ];
}

function containerLines(container: JsonObject): string[] {
  const resources = (title: string) => {
    const map = objectAt(container, 'resources', title.toLowerCase());
    const names = Object.keys(map).sort();
    if (names.length === 0) return [];
    return [`${title}:`, ...names.map((name) => `  ${name}:\t${String(map[name])}`)];
  };
  const probe = (title: string, name: string) =>
    isObject(container[name]) ? [`${title}:\t${probeText(objectAt(container, name))}`] : [];
  const lines = [
    `Image:\t${textAt(container, 'image')}`,
    ...portLines(container, 'Port', 'containerPort'),
    ...portLines(container, 'Host Port', 'hostPort'),
    ...words(container, 'Command'),
    ...words(container, 'Args'),
    ...resources('Limits'),
    ...resources('Requests'),
    ...probe('Liveness', 'livenessProbe'),
    ...probe('Readiness', 'readinessProbe'),
    ...probe('Startup', 'startupProbe'),
    ...environment(container),
    ...mounts(container),
  ];
  return lines.map((line) => `    ${line}`);
}

function portLines(container: JsonObject, title: string, name: string): string[] {
  const ports = listAt(container, 'ports').map(
    (port) => `${String(port[name] ?? 0)}/${textAt(port, 'protocol') || 'TCP'}`,
  );
  if (ports.length > 1) return [`${title}s:\t${ports.join(', ')}`];
  return [`${title}:\t${ports[0] ?? '<none>'}`];
}

function words(container: JsonObject, title: string): string[] {
  const list = container[title.toLowerCase()];
  if (!Array.isArray(list) || list.length === 0) return [];
  return [
    `${title}:`,
    ...list.flatMap((word) => String(word).split('\n')).map((line) => `  ${line}`),
  ];
}

function probeText(probe: JsonObject): string {
  const { exec, httpGet, tcpSocket, grpc } = probe;
  const number = (name: string) => String(probe[name] ?? 0);
  const times =
    `delay=${number('initialDelaySeconds')}s timeout=${number('timeoutSeconds')}s ` +
    `period=${number('periodSeconds')}s #success=${number('successThreshold')} ` +
    `#failure=${number('failureThreshold')}`;
  const target = (part: JsonObject) => `${textAt(part, 'host')}:${String(part['port'] ?? '')}`;
  if (isObject(exec)) {
    const command = Array.isArray(exec['command']) ? exec['command'] : [];
    return `exec [${command.map(String).join(' ')}] ${times}`;
  }
  if (isObject(httpGet)) {
    const scheme = textAt(httpGet, 'scheme').toLowerCase();
    return `http-get ${scheme}://${target(httpGet)}${textAt(httpGet, 'path')} ${times}`;
  }
  if (isObject(tcpSocket)) return `tcp-socket ${target(tcpSocket)} ${times}`;
  if (isObject(grpc))
    return `grpc <pod>:${String(grpc['port'])} ${textAt(grpc, 'service')} ${times}`;
  return `unknown ${times}`;
}

function environment(container: JsonObject): string[] {
  const from = listAt(container, 'envFrom').map((source) => {
    const kind = isObject(source['configMapRef']) ? 'ConfigMap' : 'Secret';
    const ref = objectAt(source, kind === 'ConfigMap' ? 'configMapRef' : 'secretRef');
    const prefix = textAt(source, 'prefix');
    const note = prefix === '' ? '' : ` with prefix '${prefix}'`;
    return `  ${textAt(ref, 'name')}\t${kind}${note}\tOptional: ${ref['optional'] === true}`;
  });
  const own = listAt(container, 'env').map((one) => `  ${textAt(one, 'name')}:\t${envValue(one)}`);
  return [
    ...(from.length === 0 ? [] : ['Environment Variables from:', ...from]),
    `Environment:${own.length === 0 ? '\t<none>' : ''}`,
    ...own,
  ];
}

function envValue(variable: JsonObject): string {
  const from = objectAt(variable, 'valueFrom');
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = from;
  if (isObject(fieldRef)) {
    return ` (${textAt(fieldRef, 'apiVersion')}:${textAt(fieldRef, 'fieldPath')})`;
  }
  if (isObject(resourceFieldRef)) return ` (${textAt(resourceFieldRef, 'resource')})`;
  const key = (ref: JsonObject, kind: string) =>
    `<set to the key '${textAt(ref, 'key')}' ${kind} '${textAt(ref, 'name')}'>` +
    `\tOptional: ${ref['optional'] === true}`;
  if (isObject(secretKeyRef)) return key(secretKeyRef, 'in secret');
  if (isObject(configMapKeyRef)) return key(configMapKeyRef, 'of config map');
  return textAt(variable, 'value').replaceAll('\n', '\n      \t');
}

function mounts(container: JsonObject): string[] {
  const lines = listAt(container, 'volumeMounts')
    .map((mount) => {
      const path = textAt(mount, 'subPath');
      const access = mount['readOnly'] === true ? 'ro' : 'rw';
      const flags = [access, ...(path === '' ? [] : [`path=${JSON.stringify(path)}`])];
      return `  ${textAt(mount, 'mountPath')} from ${textAt(mount, 'name')} (${flags.join(',')})`;
    })
    .sort();
  return [`Mounts:${lines.length === 0 ? '\t<none>' : ''}`, ...lines];
}

function volumes(list: readonly JsonObject[]): string[] {
  if (list.length === 0) return ['  Volumes:\t<none>'];
  return ['  Volumes:', ...list.flatMap(volumeLines)];
}

function volumeLines(volume: JsonObject): string[] {
  const { name: _, ...rest } = volume;
  const [type = ''] = Object.keys(rest);
  const fields = Object.entries(objectAt(volume, type)).filter(([, value]) => !isObject(value));
  return [
    `   ${textAt(volume, 'name')}:`,
    `    Type:\t${titleOf(type).replaceAll(' ', '')}`,
    ...fields.map(
      ([name, value]) =>
        `    ${titleOf(name).replaceAll(' ', '')}:\t` +
        (typeof value === 'object' ? JSON.stringify(value) : String(value)),
    ),
  ];
}

/** `key=value:NoSchedule op=Exists for 300s`. */
function tolerationText(one: JsonObject): string {
  const [key, value, effect] = ['key', 'value', 'effect'].map((name) => textAt(one, name));
  const pair = value === '' ? key : `${key}=${value}`;
  const seconds = one['tolerationSeconds'];
  const exists = textAt(one, 'operator') === 'Exists';
  const isAll = exists && key === '';
  const operator = exists && value === '' && (key !== '' || effect !== '') ? ' op=Exists' : '';
  return [
    `${pair}${effect === '' ? '' : `:${effect}`}${isAll ? `${operator || 'op=Exists'}` : operator}`,
    ...(seconds === undefined ? [] : [`for ${String(seconds)}s`]),
  ].join(' ');
}
