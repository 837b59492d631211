import { background } from '@wheelhouse/machinery';
import type { Kubelets, KubeletTrust } from '../../aggregation/kubelets.ts';
import type { KubeletPort } from '../../endpoints/call.ts';
import {
  followCertificates,
  openProxyCertificate,
  readConfigurationFile,
} from '../../files/followed-files.ts';
import type { ServerConfig } from '../config.ts';

const defaults = {
  addressTypes: ['Hostname', 'InternalDNS', 'InternalIP', 'ExternalDNS', 'ExternalIP'],
  port: 10_250,
};

/**
 * Creates the port through which requests reach kubelets; its code is loaded with the first
 * request. The port follows its certificate files until it is closed. Throws an error that names
 * the file when one is unreadable at the start.
 */
export function createKubeletPort(
  config: Pick<ServerConfig, 'kubelets' | 'authentication' | 'clock' | 'logger'>,
): KubeletPort & { close(): void } {
  const { addressTypes, port } = { ...defaults, ...config.kubelets };
  const trust = openTrust(config);
  const { kubelets, authentication } = config;
  let loading: Promise<Kubelets> | undefined;
  const load = () => {
    loading ??= import('../../aggregation/kubelets.ts').then(
      (loaded) =>
        new loaded.Kubelets({
          ...trust,
          connectTo: kubelets?.connectTo,
          requestHeader: authentication.requestHeader,
        }),
    );
    return loading;
  };
  return {
    addressTypes,
    port,
    stream: async (call, request) => (await load()).stream(call, request),
    log: async (call, request) => (await load()).log(call, request),
    proxy: async (call, request) => (await load()).proxy(call, request),
    close() {
      trust.close();
      if (loading === undefined) return;
      background(
        { where: 'aggregation' },
        loading.then((loaded) => loaded.close()),
      );
    },
  };
}

function openTrust({
  kubelets,
  clock,
  logger,
}: Pick<ServerConfig, 'kubelets' | 'clock' | 'logger'>): KubeletTrust & { close(): void } {
  const { certificate: files, caFile } = kubelets ?? {};
  const certificate = files && openProxyCertificate(files, { clock, logger, changed: () => {} });
  let caPem = caFile === undefined ? undefined : readConfigurationFile(caFile);
  const followed =
    caFile === undefined || caPem === undefined
      ? undefined
      : followCertificates({
          file: caFile,
          text: caPem,
          load: (text) => {
            caPem = text;
          },
          clock,
          logger,
        });
  return {
    caPem: () => caPem,
    certificate: () => certificate?.current(),
    close() {
      certificate?.close();
      followed?.stop();
    },
  };
}
