/** The types of `apidiscovery/v2beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, GroupVersionKind, ListMeta, ObjectMeta } from '../meta/v1.ts';
export type APIGroupDiscoveryList = {
  apiVersion: string;
  kind: 'APIGroupDiscoveryList';
  metadata: ListMeta;
  items: Embedded<APIGroupDiscovery>[];
};
export type APIGroupDiscovery = {
  apiVersion: string;
  kind: 'APIGroupDiscovery';
  metadata: ObjectMeta;
  versions?: APIVersionDiscovery[];
};
export type APIVersionDiscovery = {
  version: string;
  resources?: APIResourceDiscovery[];
  freshness?: string;
};
export type APIResourceDiscovery = {
  resource: string;
  responseKind?: GroupVersionKind;
  scope: string;
  singularResource: string;
  verbs: string[];
  shortNames?: string[];
  categories?: string[];
  subresources?: APISubresourceDiscovery[];
};
export type APISubresourceDiscovery = {
  subresource: string;
  responseKind?: GroupVersionKind;
  acceptedTypes?: GroupVersionKind[];
  verbs: string[];
};
