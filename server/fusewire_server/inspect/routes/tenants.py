"""The route of tenants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any

from fastapi import APIRouter

from fusewire_server.inspect.pages import MOST_ON_A_PAGE, After, Limit, Tenant, page_of, sort_by
from fusewire_server.inspect.requests.problems import responses
from fusewire_server.inspect.routes.fresh import Fresh
from fusewire_server.inspect.snapshots.session_view import SessionView
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.tenant_account import TenantAccount
from fusewire_server.inspect.views import Tenants, TenantView

_Sort = Annotated[str, sort_by(TenantView)]
# The figures of a tenant that are those of its sessions together.
_ADDED = [
    each.name for each in fields(SessionView) if each.name in TenantView.__dataclass_fields__ and each.name != "tenant"
]


def tenant_routes() -> APIRouter:
    """Returns the route."""
    router = APIRouter(tags=["sessions"], responses=responses())

    @router.get("/v1/tenants", responses=responses(404))
    async def tenants(
        snapshot: Fresh, limit: Limit = MOST_ON_A_PAGE, after: After = None, sort: _Sort = "", tenant: Tenant = None
    ) -> Tenants:
        """Every tenant that has had sessions: their work in flight, their memory, and what they have used."""
        page, following = page_of(
            (view for view in _tenants_of(snapshot) if tenant in {None, view.tenant}),
            lambda view: view.tenant,
            after,
            limit,
            sort,
        )
        return Tenants(tenants=page, next=following)

    return router


def _tenants_of(snapshot: Snapshot) -> Iterator[TenantView]:
    by_tenant: dict[str, list[SessionView]] = {tenant: [] for tenant in snapshot.tenants}
    for view in snapshot.sessions:
        by_tenant.setdefault(view.tenant, []).append(view)
    for tenant, views in sorted(by_tenant.items()):
        own: dict[str, Any] = {"tenant": tenant, "sessions": len(views)}
        own["account"] = snapshot.tenants.get(tenant, TenantAccount())
        own["device_bytes"] = snapshot.tenant_device_bytes.get(tenant, 0)
        own["host_bytes"] = snapshot.tenant_host_bytes.get(tenant, 0)
        sums = {name: sum(getattr(view, name) for view in views) for name in _ADDED}
        yield TenantView(**{**sums, **own})
