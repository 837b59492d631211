import {
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  optional,
  structType,
  textType,
} from '@wheelhouse/codec';
import { objectsAt, textAt } from '@wheelhouse/kinds';
import {
  type DialectName,
  dialectOf,
  duplicate,
  errorText,
  type FieldError,
  fieldErrorsText,
  invalid,
  isObject,
  type JsonObject,
  member,
  notSupported,
} from '@wheelhouse/machinery';
import { readConfigurationFile } from '../files/followed-files.ts';

const transportType = structType('Transport', {
  tcp: optional(
    structType('TCPTransport', {
      url: textType,
      tlsConfig: optional(
        structType('TLSConfig', { caBundle: textType, clientKey: textType, clientCert: textType }),
      ),
    }),
  ),
  uds: optional(structType('UDSTransport', { udsName: textType })),
});
const connectionType = structType('Connection', {
  proxyProtocol: textType,
  transport: optional(transportType),
});
const configurationType = structType('EgressSelectorConfiguration', {
  egressSelections: listType(
    structType('EgressSelection', { name: textType, connection: connectionType }),
  ),
});

/** The format of `--egress-selector-config-file`. */
export const egressFormat = {
  kind: 'EgressSelectorConfiguration',
  group: 'apiserver',
  versions: { v1beta1: configurationType, v1alpha1: configurationType },
} as const satisfies ConfigurationFormat;

const protocols = ['Direct', 'HTTPConnect', 'GRPC'];
const destinations = ['cluster', 'controlplane', 'etcd'];

/**
 * Checks that the egress configuration connects directly to every destination. Rejects with a
 * one-line error if the file is unreadable, invalid, or names a proxy.
 */
export async function checkEgress(
  file: string,
  { dialect }: { readonly dialect: DialectName },
): Promise<void> {
  const selections = await readSelections(file, dialect).catch((error: unknown) => {
    throw new Error(`failed to read egress selector config: ${file}: ${errorText(error)}`);
  });
  const errors = selectionErrors(selections);
  if (errors.length > 0) {
    const why = fieldErrorsText(errors);
    throw new Error(`failed to validate egress selector configuration: ${file}: ${why}`);
  }
  const proxied = selections.filter((selection) => protocolOf(selection) !== 'Direct');
  if (proxied.length === 0) return;
  const names = proxied
    .map((selection) => `${textAt(selection, 'name')} (${protocolOf(selection)})`)
    .join(', ');
  throw new Error(
    `--egress-selector-config-file=${file}: connections through a proxy are not supported: ${names}`,
  );
}

async function readSelections(file: string, dialect: DialectName): Promise<readonly JsonObject[]> {
  const { object } = await decodeConfiguration(readConfigurationFile(file), {
    ...egressFormat,
    group: dialectOf(dialect).group(egressFormat.group),
  });
  return objectsAt(object, 'egressSelections').map((selection) =>
    textAt(selection, 'name') === 'master' ? { ...selection, name: 'controlplane' } : selection,
  );
}

const protocolOf = (selection: JsonObject) => textAt(selection, 'connection', 'proxyProtocol');

/** The errors of a configuration, with kube-apiserver's field names. */
function selectionErrors(selections: readonly JsonObject[]): FieldError[] {
  const field = 'service.connection';
  const errors: FieldError[] = [];
  for (const selection of selections) {
    const protocol = protocolOf(selection);
    const connection = member(selection, 'connection');
    const transport = isObject(connection) ? member(connection, 'transport') : undefined;
    if (!protocols.includes(protocol)) {
      errors.push(notSupported(`${field}.protocol`, protocol, protocols));
    } else if (protocol === 'Direct' && isObject(transport)) {
      const detail = 'Transport config should be absent for direct connect';
      errors.push(invalid(`${field}.transport`, 'direct', detail));
    }
  }
  const seen = new Set<string>();
  for (const [index, selection] of selections.entries()) {
    const name = textAt(selection, 'name').toLowerCase();
    if (seen.has(name)) errors.push(duplicate(`${field}[${index}]`, name));
    else if (!destinations.includes(name)) errors.push(notSupported(field, name, destinations));
    seen.add(name);
  }
  return errors;
}
