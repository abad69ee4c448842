# SPDX-License-Identifier: Apache-2.0

"""The way of one changed reservation, from its request to its report.

A stop is a public function or method of ours that gets the change, or the
answer to it, from another module, thread, process or store and hands it on to
one, or that decides with what it keeps whether the change is applied.

So these are none:

* functions that a module has for itself;
* pure functions of their arguments, such as parsing
  (``vsched_api.rest.overrides``, ``vsched_agent.reservations.desired``),
  conversion (``vsched_api.operations.inspection``) and arithmetic
  (``vsched_lib.model``), and methods of the values in which it travels;
* checks of a request or message before it is stored: authorization,
  signatures, schemas, what a host can express;
* our bindings of the bus, the databases and the kernel, such as
  ``vsched_lib.contract.rpc``, ``vsched_api.db.session``,
  ``vsched_agent.state.storage`` and ``vsched_agent.privileged.syscalls``.
"""

#: In their order, as ``module:function`` or ``module:Class.method``. The
#: backend is ``deadline``, and the instance has no other special features.
STOPS = (
    # The request is stored, and its agent notified.
    'vsched_api.rest.reservations:update',
    'vsched_api.operations.reservations:change',
    'vsched_api.operations.overrides:store',
    'vsched_api.db.queries.overrides:put',
    'vsched_api.operations.announcements:Announcer.overrides_changed',
    'vsched_lib.contract.agent_rpc:AgentClient.overrides_changed',
    'vsched_lib.contract.agent_rpc:AgentEndpoint.overrides_changed',
    # The agent fetches it.
    'vsched_agent.reporting.collector_session:Reporter.on_overrides_changed',
    'vsched_lib.contract.collector_rpc:CollectorClient.overrides',
    'vsched_lib.contract.collector_rpc:CollectorEndpoint.overrides',
    'vsched_api.operations.overrides:of_host',
    'vsched_api.db.queries.overrides:of_host',
    # The agent applies it.
    'vsched_agent.reconciliation.reconciler:Reconciler.set_overrides',
    'vsched_agent.state.store:Journal.replace_overrides',
    'vsched_agent.reconciliation.reconciler:Reconciler.run_pass',
    'vsched_agent.reconciliation.instance:InstanceReconciler.reconcile',
    'vsched_agent.reservations.enforcer:Enforcer.hold',
    'vsched_agent.reservations.admission:AdmissionChecker.need',
    'vsched_agent.reservations.admission:AdmissionChecker.admit',
    'vsched_agent.reservations.vcpu_threads:VcpuThreads.apply',
    'vsched_agent.enforcement.deadline:DeadlineBackend.apply_each',
    'vsched_agent.privileged.sched:set_deadline',
    'vsched_agent.privileged.entering:enter',
    # The agent reports it.
    'vsched_agent.reporting.reservation_reports:ReservationReports.add',
    'vsched_agent.reporting.report_builder:ReportBuilder.post',
    'vsched_agent.state.outbox:Outbox.post',
    'vsched_agent.reporting.collector_session:Reporter.deliver',
    'vsched_agent.state.outbox:Outbox.oldest',
    'vsched_lib.contract.collector_rpc:CollectorClient.report',
    'vsched_lib.contract.collector_rpc:CollectorEndpoint.report',
    'vsched_api.operations.reports:Storage.store',
    'vsched_api.operations.gathering:Gathering.store',
    'vsched_api.operations.report_groups:store_many',
    'vsched_api.operations.reported_instances:put_reservations',
    'vsched_api.db.queries.latest:put',
)
