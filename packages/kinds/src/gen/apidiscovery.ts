/** Facts about the types of `apidiscovery`; made by scripts/facts/generate.mjs, do not edit. */
export const apidiscoveryFacts = `
@v2
#APIGroupDiscoveryList k i=1.30
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []APIGroupDiscovery
#APIGroupDiscovery k i=1.30
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
versions 2 []APIVersionDiscovery e l=map k=version
#APIVersionDiscovery
version 1 string
resources 2 []APIResourceDiscovery e l=map k=resource
freshness 3 string e t=v2.DiscoveryFreshness
#APIResourceDiscovery
resource 1 string
responseKind 2 *meta.v1.GroupVersionKind e
scope 3 string t=v2.ResourceScope
singularResource 4 string
verbs 5 []string l=set
shortNames 6 []string e l=set
categories 7 []string e l=set
subresources 8 []APISubresourceDiscovery e l=map k=subresource
#APISubresourceDiscovery
subresource 1 string
responseKind 2 *meta.v1.GroupVersionKind e
acceptedTypes 3 []meta.v1.GroupVersionKind e l=map k=group k=version k=kind
verbs 4 []string l=set
@v2beta1
#APIGroupDiscoveryList k i=1.26 d=1.32 x=1.35
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []APIGroupDiscovery
#APIGroupDiscovery k i=1.26 d=1.32 x=1.35
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
versions 2 []APIVersionDiscovery e l=map k=version
#APIVersionDiscovery
version 1 string
resources 2 []APIResourceDiscovery e l=map k=resource
freshness 3 string e t=v2beta1.DiscoveryFreshness
#APIResourceDiscovery
resource 1 string
responseKind 2 *meta.v1.GroupVersionKind e
scope 3 string t=v2beta1.ResourceScope
singularResource 4 string
verbs 5 []string l=set
shortNames 6 []string e l=set
categories 7 []string e l=set
subresources 8 []APISubresourceDiscovery e l=map k=subresource
#APISubresourceDiscovery
subresource 1 string
responseKind 2 *meta.v1.GroupVersionKind e
acceptedTypes 3 []meta.v1.GroupVersionKind e l=map k=group k=version k=kind
verbs 4 []string l=set
`;
