/** The types of `meta/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { ListMeta, PartialObjectMetadata } from './v1.ts';
export type PartialObjectMetadataList = {
  apiVersion: string;
  kind: 'PartialObjectMetadataList';
  metadata: ListMeta;
  items: PartialObjectMetadata[];
};
