import { readFeatureGates } from '@wheelhouse/server/testing';
import { documents, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';

/** A cluster-scoped object; both clients create it, so its name contains the namespace. */
const object = (apiVersion: string, kind: string, name: string, rest: object) => ({
  apiVersion,
  kind,
  metadata: { name, labels: { a: 'b' }, annotations: { note: 'n' } },
  ...rest,
});
const networking = 'networking.k8s.io/v1beta1';
const ranges = [
  object(networking, 'ServiceCIDR', 'one-@ns', { spec: { cidrs: ['10.1.0.0/24'] } }),
  object(networking, 'ServiceCIDR', 'two-@ns', { spec: { cidrs: ['10.2.0.0/24', 'fd00::/112'] } }),
];
const parentRef = { group: 'example.com', resource: 'gateways', namespace: 'x', name: 'g' };
// Its name cannot contain the namespace of a client, so that both describe the same object.
const address = object(networking, 'IPAddress', '192.168.7.7', { spec: { parentRef } });
const attributes = [
  object('storage.k8s.io/v1beta1', 'VolumeAttributesClass', 'full-@ns', {
    driverName: 'd.example.com',
    parameters: { iops: '1', size: '2' },
  }),
  object('storage.k8s.io/v1beta1', 'VolumeAttributesClass', 'bare-@ns', {
    driverName: 'd.example.com',
    parameters: { iops: '1' },
  }),
];

printsLikeKubectl(
  'describe-beta',
  [
    ['create -f -', documents(...ranges, ...attributes)],
    ['describe servicecidr one-@ns'],
    ['describe servicecidr two-@ns --show-events=false'],
    ['describe ipaddress 192.168.7.7'],
    ['describe ipaddress 192.168.7.7 --show-events=false'],
    ['describe volumeattributesclass full-@ns'],
    ['describe vac bare-@ns --show-events=false'],
  ],
  {
    prepare: async (server) => {
      await server.post(`/apis/${networking}/ipaddresses`, address);
    },
    config: {
      runtimeConfig: new Map([
        [networking, true],
        ['storage.k8s.io/v1beta1', true],
      ]),
      featureGates: readFeatureGates([
        'MultiCIDRServiceAllocator=true',
        'VolumeAttributesClass=true',
      ]).gates,
    },
  },
);
