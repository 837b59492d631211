import type {
  APIGroupDiscovery,
  APIResourceDiscovery,
  APIVersionDiscovery,
} from '@wheelhouse/kinds/types/apidiscovery/v2';

/** A version in aggregated discovery. Every member may be absent. */
type DiscoveredVersion = Omit<APIVersionDiscovery, 'resources'> & {
  resources: [APIResourceDiscovery, ...APIResourceDiscovery[]];
};

/** A group in aggregated discovery. */
export type DiscoveredGroup = Omit<APIGroupDiscovery, 'metadata' | 'versions'> & {
  metadata: { name: string };
  versions: [DiscoveredVersion, ...DiscoveredVersion[]];
};

/** The document of aggregated discovery in a response. */
export interface DiscoveredGroups {
  readonly apiVersion: string;
  readonly kind: string;
  readonly items: readonly [DiscoveredGroup, ...DiscoveredGroup[]];
}
